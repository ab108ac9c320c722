import { defineStore } from 'pinia'
import { computed, ref, shallowRef } from 'vue'
import { useSession } from './session.ts'

const OTHER = /^#\/(servers|activity)(?:\/(.*))?$/

export type View = 'chat' | 'servers' | 'activity'

/** A message, by its `seq`, or a call in a session. */
export interface Target {
  sessionId: string
  seq?: number
  callId?: string
}

/** Which part of the page is open. The address contains it, like the session. */
export const usePlace = defineStore('place', () => {
  const session = useSession()
  const hash = ref(location.hash)
  const parts = computed(() => OTHER.exec(hash.value))
  const view = computed((): View => (parts.value?.[1] as View | undefined) ?? 'chat')
  /** The server whose page is open. */
  const server = computed(() => (view.value === 'servers' && parts.value?.[2] ? decoded(parts.value[2]) : null))

  /** Where the chat scrolls to once its session is open. */
  const target = shallowRef<Target | null>(null)

  function follow(): void {
    hash.value = location.hash
  }
  function toServer(name: string | null): void {
    location.hash = name === null ? '#/servers' : serverAddress(name)
  }
  function toChat(): void {
    if (view.value !== 'chat') location.hash = `#/s/${session.sessionId}`
  }
  function toTarget(wanted: Target): void {
    if (wanted.sessionId !== session.sessionId) session.open(wanted.sessionId)
    toChat()
    target.value = wanted
  }
  addEventListener('hashchange', follow)
  addEventListener('popstate', follow)
  return { view, server, target, toServer, toChat, toTarget }
})

/** The address of a server's own page, with its log. */
export function serverAddress(name: string): string {
  return `#/servers/${encodeURIComponent(name)}`
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
