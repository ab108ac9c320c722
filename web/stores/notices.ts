import { defineStore } from 'pinia'
import { ref } from 'vue'
import { isOffline, messageOf } from '../api.ts'

export interface Toast {
  id: number
  tone: 'info' | 'error'
  text: string
  /** Shown because there was no connection; dismissed when it is back. */
  isOffline?: true
  /** A button that takes back what the toast tells. */
  undo?: () => void
}

/** Long enough for a screen reader to notice that the text was cleared. */
const SILENCE_MS = 100
const ANNOUNCED_MS = 10_000
/** The server allows a little more. */
const UNDO_MS = 20_000

/** Toasts that disappear by themselves, and announcements for screen readers. */
export const useNotices = defineStore('notices', () => {
  const toasts = ref<Toast[]>([])
  const announcement = ref('')
  let nextId = 1
  const announcements: string[] = []

  function show(text: string, tone: Toast['tone'] = 'info', more: Pick<Toast, 'isOffline' | 'undo'> = {}): void {
    const id = nextId++
    toasts.value = [...toasts.value.slice(-3), { id, tone, text, ...more }]
    setTimeout(() => dismiss(id), more.undo ? UNDO_MS : tone === 'error' ? 9000 : 4000)
  }
  /** Says what was not done because there is no connection; never twice at the same time. */
  function showOffline(text: string): void {
    toasts.value = toasts.value.filter((toast) => toast.text !== text)
    show(text, 'error', { isOffline: true })
  }
  function dropOffline(): void {
    toasts.value = toasts.value.filter(({ isOffline }) => !isOffline)
  }
  function dismiss(id: number): void {
    toasts.value = toasts.value.filter((toast) => toast.id !== id)
  }
  /** Announces one text after the other, and clears it in between so that repeated texts are read again. */
  function announce(text: string): void {
    announcements.push(text)
    if (announcements.length === 1) announceNext()
  }
  function announceNext(): void {
    announcement.value = ''
    setTimeout(() => {
      announcement.value = announcements[0] ?? ''
      setTimeout(() => {
        announcements.shift()
        if (announcements.length > 0) announceNext()
        else forgetLater(announcement.value)
      }, SILENCE_MS)
    }, SILENCE_MS)
  }
  /** A text that stays would be read as part of a dialog that opens later. */
  function forgetLater(text: string): void {
    setTimeout(() => retract(text), ANNOUNCED_MS)
  }
  /** Removes a text that is no longer true, without announcing anything. */
  function retract(text: string): void {
    if (announcement.value === text) announcement.value = ''
  }
  /** Runs something that may fail, and shows its error message. */
  async function attempt<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work()
    } catch (error) {
      const text = messageOf(error)
      if (isOffline(error)) showOffline(text)
      else show(text, 'error')
      return undefined
    }
  }
  return { toasts, announcement, show, showOffline, dropOffline, dismiss, announce, retract, attempt }
})
