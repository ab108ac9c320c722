import { onUnmounted, type Ref, ref, watch } from 'vue'
import { useComposer } from '../stores/composer.ts'
import { useSession } from '../stores/session.ts'

/** How long the question is shown. After that, Escape asks again. */
const ASK_MS = 8000
const MODIFIERS = ['Shift', 'Control', 'Alt', 'Meta', 'CapsLock']

export interface StopKey {
  isAsking: Readonly<Ref<boolean>>
  /** Stops the turn, or only removes the question. */
  answer(isStop: boolean): void
  onKey(event: KeyboardEvent): void
}

/**
 * Escape stops the turn: the first press asks, and a second one stops while the question is shown, however soon it comes; a key that is
 * held down is one press. Any click and any other key remove the question. If waiting calls would be cancelled, Escape opens a dialog, and only its button stops the turn.
 */
export function useStopKey(): StopKey {
  const session = useSession()
  const composer = useComposer()
  const isAsking = ref(false)
  let timer: ReturnType<typeof setTimeout>

  function ask() {
    isAsking.value = true
    clearTimeout(timer)
    timer = setTimeout(() => answer(false), ASK_MS)
  }
  function answer(isStop: boolean) {
    clearTimeout(timer)
    isAsking.value = false
    if (!isStop) return
    // Calls may have come since the question was asked. Otherwise the person has answered it, also just after sending a message.
    if (session.pendingIds.length > 0) composer.askStop()
    else void composer.stop()
  }
  function onKey(event: KeyboardEvent) {
    const { key, repeat, isComposing, defaultPrevented } = event
    // Any other key, also one that a card has swallowed, or an Escape that was handled elsewhere.
    const isOther = key !== 'Escape' || isComposing || defaultPrevented
    if (isOther) return void (isAsking.value && !MODIFIERS.includes(key) && answer(false))
    if (repeat || session.transcript.turnId === null) return
    if (session.pendingIds.length > 0) {
      // Otherwise the browser would close the new dialog with the same key press.
      event.preventDefault()
      answer(false)
      composer.askStop()
    } else if (!isAsking.value) ask()
    else answer(true)
  }
  watch(
    () => session.transcript.turnId,
    () => answer(false)
  )
  const onPointer = ({ target }: Event) => {
    if (isAsking.value && !(target instanceof Element && target.closest('[data-stop-prompt]'))) answer(false)
  }
  document.addEventListener('pointerdown', onPointer, { capture: true })
  onUnmounted(() => {
    clearTimeout(timer)
    document.removeEventListener('pointerdown', onPointer, { capture: true })
  })
  return { isAsking, answer, onKey }
}
