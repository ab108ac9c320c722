import { defineStore } from 'pinia'
import { computed, ref } from 'vue'
import type { SandboxState } from '../../contract/live.ts'
import type { SessionSummary } from '../../contract/rest.ts'
import { api, isOffline, messageOf, type SessionChange } from '../api.ts'
import { onNews } from '../news.ts'
import { isUnsaid } from '../text/silent-entries.ts'
import { forgetAllDrafts, forgetDrafts, useComposer } from './composer.ts'
import { useNotices } from './notices.ts'
import { useSession } from './session.ts'

const PAGE = 50
const MAX_LISTED = 1000
const NOT_DELETED = 'Not deleted: no connection.'
/** News about a session that is not listed loads the list again, at most this often. */
const RELOAD_MS = 500

/** A session in the list. `at` is when its state was received. */
export interface ListedSession extends Omit<SessionSummary, 'sandbox'> {
  sandbox: SandboxState
  at: number
}

/** The person's sessions: the first page, and more as the list is scrolled. The server counts and sorts, because it knows all of them. */
export const useSessions = defineStore('sessions', () => {
  const session = useSession()
  const notices = useNotices()
  const loaded = ref<SessionSummary[]>([])
  const loadedAt = ref(0)
  /** Number of all sessions in this list, loaded or not. */
  const total = ref(0)
  const hasMore = ref(false)
  /** Whether the archived sessions are listed instead of the others. */
  const isArchive = ref(false)
  /** The open session, listed or not. */
  const open = ref<SessionSummary>()
  const list = computed(() => loaded.value.map(withLiveState).toSorted(inOrder))
  /** Uses the state of the open session's own connection, so that list and header change together. */
  function withLiveState(each: SessionSummary): ListedSession {
    if (each.sessionId !== session.sessionId || !session.isKnown) return { ...each, at: loadedAt.value }
    const { sandbox, recycleInMs, at } = session.state
    return { ...each, sandbox, recycleInMs, at, pendingApprovals: session.pendingIds.length }
  }
  const isOpen = ({ sessionId }: SessionSummary) => sessionId === session.sessionId
  const current = computed(
    () => loaded.value.find(isOpen) ?? (open.value && isOpen(open.value) ? open.value : undefined)
  )

  /** Sessions that were deleted in this page. */
  const removed = new Set<string>()
  let requests = 0
  /** Number of rows to list. */
  let rows = PAGE
  let isLoadingMore = false

  /** Ignores a reply that a later one has overtaken: it may list sessions that are deleted by now. */
  async function load(): Promise<void> {
    const request = ++requests
    const archived = isArchive.value ? { archived: 'true' as const } : {}
    try {
      const page = await api.sessions({ limit: Math.min(MAX_LISTED, rows), ...archived })
      if (request !== requests) return
      loaded.value = page.sessions
      total.value = page.total
      hasMore.value = page.next !== null && page.sessions.length < MAX_LISTED
      loadedAt.value = Date.now()
      // A session in which nothing has happened may not exist yet.
      if (!loaded.value.some(isOpen) && session.transcript.entries.length > 0) await loadCurrent(request)
    } catch {
      // A banner shows that the server can't be reached; keep the list.
    }
  }
  /** Adds the open session if it is older than the first page. */
  async function loadCurrent(request: number): Promise<void> {
    const found = await api.session(session.sessionId)
    if (request !== requests) return
    open.value = found
    const isMissing = hasMore.value && found.isArchived === isArchive.value && !loaded.value.some(isOpen)
    if (isMissing) loaded.value = [...loaded.value, found]
  }
  /** Loads all listed rows again with the next ones, because a session that became active meanwhile has moved to another page. */
  async function loadMore(): Promise<void> {
    if (!hasMore.value || isLoadingMore) return
    isLoadingMore = true
    rows = loaded.value.length + PAGE
    await load()
    isLoadingMore = false
  }
  async function showArchive(isWanted: boolean): Promise<void> {
    isArchive.value = isWanted
    loaded.value = []
    total.value = 0
    rows = PAGE
    await load()
  }

  let isReloadDue = false
  function reloadSoon(): void {
    if (isReloadDue) return
    isReloadDue = true
    setTimeout(() => {
      isReloadDue = false
      void load()
    }, RELOAD_MS)
  }
  onNews('session:changed', ({ sessionId, summary }) => {
    const at = loaded.value.findIndex((each) => each.sessionId === sessionId)
    const isListed = summary?.isArchived === isArchive.value && !summary.isDeleted
    if (summary && sessionId === session.sessionId) open.value = summary
    if (summary && at >= 0 && isListed) loaded.value[at] = summary
    else if (at >= 0 || isListed) reloadSoon()
    if (at >= 0 && !isListed) loaded.value = loaded.value.filter((each) => each.sessionId !== sessionId)
  })

  /** Counts over all sessions of this person, as of now. */
  async function countAll(): Promise<{ sessions: number; waitingCalls: number } | undefined> {
    return notices.attempt(async () => {
      const all = { limit: 1, archived: 'any' as const }
      const [counted, waiting] = await Promise.all([api.sessions(all), api.sessions({ ...all, waiting: true })])
      return { sessions: counted.total, waitingCalls: waiting.waitingCalls ?? 0 }
    })
  }

  /** Renames, pins or archives. The list shows it at once; the reply, or the news, confirms it. */
  async function change(id: string, given: SessionChange): Promise<void> {
    await notices.attempt(async () => {
      const summary = await api.changeSession(id, given)
      if (id === session.sessionId) open.value = summary
    })
    await load()
  }
  /** Opens a new session with a conversation that was exported as JSON. */
  async function importFile(file: File): Promise<void> {
    const { jsonFault } = await import('../text/json-fault.ts')
    const fault = jsonFault(await file.text())
    if (fault !== null)
      return notices.show(`“${file.name}” is not an exported conversation. It is not valid JSON: ${fault}.`, 'error')
    const imported = await notices.attempt(() => api.importSession(file))
    if (imported) session.open(imported.sessionId)
    await load()
  }
  /** The subject of the open question: a session, or all of them, counted when the question was opened. */
  const deleting = ref<ListedSession | { sessions: number; waitingCalls: number } | null>(null)
  async function askToDeleteAll(): Promise<void> {
    deleting.value = (await countAll()) ?? null
  }
  async function remove(id: string): Promise<void> {
    const title = loaded.value.find(({ sessionId }) => sessionId === id)?.title ?? current.value?.title
    const isOpenOne = id === session.sessionId
    const isGone = await tryDelete(() => api.deleteSession(id), isOpenOne)
    if (isGone) {
      removed.add(id)
      if (isOpenOne) session.openNew()
      const putBack = forgetDrafts(id)
      const undo = () => void restore(id, isOpenOne, putBack)
      notices.show(`Deleted “${title || 'New session'}”.`, 'info', { undo })
    }
    await load()
  }
  async function restore(id: string, wasOpen: boolean, putBackDrafts: () => void): Promise<void> {
    const isBack = await notices.attempt(() => api.restoreSession(id))
    if (isBack) {
      removed.delete(id)
      putBackDrafts()
      if (wasOpen) session.open(id)
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
    if (isUnwritten && session.isKnown && session.connected && isUnsaid(session.transcript.entries)) return
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
    }, 60_000)
  }
  return {
    ...{ list, total, hasMore, isArchive, current, load, loadMore, showArchive },
    ...{ deleting, askToDeleteAll },
    ...{ change, importFile, remove, removeAll, isRemoved: (id: string) => removed.has(id), openNew, bindEvents }
  }
})

type Ranked = Pick<SessionSummary, 'isPinned' | 'activeAt'>
function inOrder(a: Ranked, b: Ranked): number {
  return Number(b.isPinned) - Number(a.isPinned) || b.activeAt - a.activeAt
}
