import { defineStore } from 'pinia'
import { computed, ref, watch } from 'vue'
import type { SandboxState } from '../../contract/live.ts'
import type { SessionSummary } from '../../contract/rest.ts'
import { api, isOffline, messageOf } from '../api.ts'
import { forgetAllDrafts, forgetDrafts, useComposer } from './composer.ts'
import { useNotices } from './notices.ts'
import { useSession } from './session.ts'

const PAGE = 50
const MAX_LISTED = 1000
const NOT_DELETED = 'Not deleted: no connection.'
/** Delay between the last keystroke and the search. */
const SEARCH_AFTER_MS = 250

/** A session in the list. `at` is when its state was received. */
export interface ListedSession extends Omit<SessionSummary, 'sandbox'> {
  sandbox: SandboxState
  at: number
}

/** The person's sessions: the first page, and more as the list is scrolled. The server counts and searches, because it knows all of them. */
export const useSessions = defineStore('sessions', () => {
  const session = useSession()
  const notices = useNotices()
  const loaded = ref<SessionSummary[]>([])
  const loadedAt = ref(0)
  /** Number of all sessions, loaded or not, or of those that the search finds. */
  const total = ref(0)
  const hasMore = ref(false)
  /** Search text: a part of the title. */
  const searchText = ref('')
  /** The open session, listed or not. */
  const open = ref<SessionSummary>()
  /** Uses the state of the open session's own connection, so that list and header change together. */
  const list = computed(() => loaded.value.map((each) => withLiveState(each)))
  function withLiveState(each: SessionSummary): ListedSession {
    if (each.sessionId !== session.sessionId || !session.isKnown) return { ...each, at: loadedAt.value }
    const { sandbox, recycleInMs, at } = session.state
    return { ...each, sandbox, recycleInMs, at, pendingApprovals: session.pendingIds.length }
  }
  const isOpen = ({ sessionId }: SessionSummary) => sessionId === session.sessionId
  const current = computed(
    () => loaded.value.find(isOpen) ?? (open.value && isOpen(open.value) ? open.value : undefined)
  )

  let requests = 0
  /** Number of rows to list. */
  let rows = PAGE
  let isLoadingMore = false
  const title = () => searchText.value.trim()

  /** Ignores a reply that a later one has overtaken: it may list sessions that are deleted by now. */
  async function load(): Promise<void> {
    const request = ++requests
    try {
      const page = await api.sessions({ limit: Math.min(MAX_LISTED, rows), title: title() })
      if (request !== requests) return
      loaded.value = page.sessions
      total.value = page.total
      hasMore.value = page.next !== null && page.sessions.length < MAX_LISTED
      loadedAt.value = Date.now()
      if (!loaded.value.some(isOpen) && (page.next !== null || title() !== '')) await loadCurrent(request)
    } catch {
      // A banner shows that the server can't be reached; keep the list.
    }
  }
  /** Adds the open session if it is older than the first page, unless a search does not find it. */
  async function loadCurrent(request: number): Promise<void> {
    const found = await api.session(session.sessionId)
    if (request !== requests) return
    open.value = found
    if (title() === '' && !loaded.value.some(isOpen)) loaded.value = [...loaded.value, found]
  }
  /** Loads all listed rows again with the next ones, because a session that became active meanwhile has moved to another page. */
  async function loadMore(): Promise<void> {
    if (!hasMore.value || isLoadingMore) return
    isLoadingMore = true
    rows = loaded.value.length + PAGE
    await load()
    isLoadingMore = false
  }
  let searchTimer: ReturnType<typeof setTimeout>
  watch(searchText, () => {
    requests += 1
    clearTimeout(searchTimer)
    searchTimer = setTimeout(() => {
      loaded.value = []
      rows = PAGE
      void load()
    }, SEARCH_AFTER_MS)
  })

  /** Counts over all sessions of this person, as of now. */
  async function countAll(): Promise<{ sessions: number; waitingCalls: number } | undefined> {
    return notices.attempt(async () => {
      const [all, waiting] = await Promise.all([api.sessions({ limit: 1 }), api.sessions({ limit: 1, waiting: true })])
      return { sessions: all.total, waitingCalls: waiting.waitingCalls ?? 0 }
    })
  }

  /** The listed sessions with calls that need approval, and the number of all such sessions. */
  const waiting = ref({ sessions: [] as SessionSummary[], total: 0 })
  const waitingChats = computed(() =>
    waiting.value.sessions.map(withLiveState).filter((each) => each.pendingApprovals > 0)
  )
  const unlistedWaiting = computed(() => waiting.value.total - waiting.value.sessions.length)
  async function loadWaiting(): Promise<void> {
    waiting.value = await api.sessions({ limit: PAGE, waiting: true }).catch(() => waiting.value)
  }

  async function rename(id: string, name: string): Promise<void> {
    await notices.attempt(() => api.renameSession(id, name))
    await load()
  }
  async function remove(id: string): Promise<void> {
    const isGone = await tryDelete(() => api.deleteSession(id), id === session.sessionId)
    if (isGone) {
      if (id === session.sessionId) session.openNew()
      forgetDrafts(id)
    }
    await load()
  }
  async function removeAll(): Promise<void> {
    const isGone = await tryDelete(() => api.deleteAllSessions(), true)
    if (isGone) {
      session.openNew()
      forgetAllDrafts(session.sessionId)
    }
    await load()
  }
  /** Deletes before the page leaves the session: without a connection, the conversation stays on the screen. */
  async function tryDelete(work: () => Promise<unknown>, isOpenToo: boolean): Promise<boolean> {
    if (isDisconnected()) {
      notices.showOffline(NOT_DELETED)
      return false
    }
    try {
      await (isOpenToo ? session.whileDeleting(work) : work())
      return true
    } catch (error) {
      if (isOffline(error)) notices.showOffline(NOT_DELETED)
      else notices.show(`Not deleted: ${messageOf(error)}`, 'error')
      return false
    }
  }
  /** A server that refuses this session still answers requests. */
  const isDisconnected = () => session.isLost && session.phase !== 'refused'

  /** Reuses the open session if it is empty and nothing is written in it. */
  async function openNew(): Promise<void> {
    const { draft, queued, sending } = useComposer()
    const isUnwritten = draft === '' && queued.length === 0 && !sending
    if (isUnwritten && session.isKnown && session.connected && session.transcript.entries.length === 0) return
    const from = session.sessionId
    if (isDisconnected() || !(await api.isReachable())) return notices.showOffline('No new session: no connection.')
    // A second click may have opened one meanwhile.
    if (session.sessionId === from) session.openNew()
  }
  /** Keeps the list up to date while the page is open. */
  function bindEvents(): void {
    session.onEvent(({ type }) => {
      if (type === 'turn:end' || type === 'user:message' || type === 'tool:approval_required') void load()
    })
    setInterval(() => {
      if (document.visibilityState === 'visible' && session.connected) void load()
    }, 30_000)
  }
  return {
    ...{ list, total, hasMore, searchText, current, load, loadMore, countAll },
    ...{ rename, remove, removeAll, openNew, bindEvents },
    ...{ waitingChats, unlistedWaiting, loadWaiting }
  }
})
