import { defineStore } from 'pinia'
import { computed, ref } from 'vue'
import type { SessionSummary } from '../../contract/rest.ts'
import { api } from '../api.ts'
import { forgetWritten } from './composer.ts'
import { useNotices } from './notices.ts'
import { useSession } from './session.ts'

/** The list of this person's sessions. */
export const useSessions = defineStore('sessions', () => {
  const session = useSession()
  const notices = useNotices()
  const list = ref<SessionSummary[]>([])
  const loadedAt = ref(0)
  const current = computed(() => list.value.find(({ sessionId }) => sessionId === session.sessionId))

  let asked = 0

  /** An answer that was overtaken by a later one does not count: what it lists may be deleted by now. */
  async function load(): Promise<void> {
    const mine = ++asked
    try {
      const found = await api.sessions()
      if (mine !== asked) return
      list.value = found
      loadedAt.value = Date.now()
    } catch {
      // The page says by other means that the server is away; the list stays as it was.
    }
  }
  async function rename(id: string, title: string): Promise<void> {
    await notices.attempt(() => api.renameSession(id, title))
    await load()
  }
  async function remove(id: string): Promise<void> {
    if (id === session.sessionId) session.openNew()
    if (await notices.attempt(() => api.deleteSession(id))) forgetWritten(id)
    await load()
  }
  async function removeAll(): Promise<void> {
    const ids = [session.sessionId, ...list.value.map(({ sessionId }) => sessionId)]
    session.openNew()
    if (await notices.attempt(() => api.deleteAllSessions())) ids.forEach(forgetWritten)
    await load()
  }
  /** Keeps the list true while the page is in use. */
  function bindEvents(): void {
    session.onEvent(({ type }) => {
      if (type === 'turn:end' || type === 'user:message' || type === 'tool:approval_required') void load()
    })
    setInterval(() => {
      if (document.visibilityState === 'visible' && session.connected) void load()
    }, 30_000)
  }
  return { list, loadedAt, current, load, rename, remove, removeAll, bindEvents }
})
