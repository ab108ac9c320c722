import { defineStore } from 'pinia'
import { computed, ref } from 'vue'
import type { SandboxState } from '../../contract/live.ts'
import type { SessionSummary } from '../../contract/rest.ts'
import { api } from '../api.ts'
import { forgetWritten } from './composer.ts'
import { useNotices } from './notices.ts'
import { useSession } from './session.ts'

const PAGE = 50
const MAX_LISTED = 1000

/** A session as the list shows it; `at`: when its state was heard of. */
export interface ListedSession extends Omit<SessionSummary, 'sandbox'> {
  sandbox: SandboxState
  at: number
}

/** The list of this person's sessions: a page of it, and more as it is scrolled. */
export const useSessions = defineStore('sessions', () => {
  const session = useSession()
  const notices = useNotices()
  const loaded = ref<SessionSummary[]>([])
  const loadedAt = ref(0)
  /** How many there are, loaded or not. */
  const total = ref(0)
  const next = ref<string | null>(null)
  /** What the open session says of itself counts, as in the header: both change at the same moment. */
  const list = computed(() => loaded.value.map((each) => withNews(each)))
  function withNews(each: SessionSummary): ListedSession {
    if (each.sessionId !== session.sessionId || !session.isKnown) return { ...each, at: loadedAt.value }
    const { sandbox, recycleInMs, at } = session.state
    return { ...each, sandbox, recycleInMs, at, pendingApprovals: session.pendingIds.length }
  }
  const current = computed(() => list.value.find(({ sessionId }) => sessionId === session.sessionId))

  let asked = 0
  let isLoadingMore = false

  /** An answer that was overtaken by a later one does not count: what it lists may be deleted by now. */
  async function load(): Promise<void> {
    const mine = ++asked
    try {
      const page = await api.sessions(Math.min(MAX_LISTED, Math.max(PAGE, loaded.value.length)))
      if (mine !== asked) return
      loaded.value = page.sessions
      total.value = page.total
      next.value = page.next
      loadedAt.value = Date.now()
      if (page.next !== null && !current.value) await loadCurrent(mine)
    } catch {
      // The page says by other means that the server is away; the list stays as it was.
    }
  }
  /** The open session may be older than those on the first page. */
  async function loadCurrent(mine: number): Promise<void> {
    const found = await api.session(session.sessionId)
    if (mine === asked && !current.value) loaded.value = [...loaded.value, found]
  }
  async function loadMore(): Promise<void> {
    const [mine, before] = [asked, next.value]
    if (before === null || isLoadingMore) return
    isLoadingMore = true
    try {
      const page = await api.sessions(PAGE, before)
      if (mine !== asked) return
      const ids = new Set(page.sessions.map(({ sessionId }) => sessionId))
      loaded.value = [...loaded.value.filter(({ sessionId }) => !ids.has(sessionId)), ...page.sessions]
      next.value = page.next
    } catch {
      // As above; scrolling on asks again.
    } finally {
      isLoadingMore = false
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
  return { list, total, next, current, load, loadMore, rename, remove, removeAll, bindEvents }
})
