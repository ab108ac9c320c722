import { defineStore } from 'pinia'
import { computed, ref, watch } from 'vue'
import type { SessionSummary, WaitingCall, WaitingQuestion } from '../../contract/rest.ts'
import { api } from '../api.ts'
import { onNews } from '../news.ts'
import { recalled } from '../remembered.ts'
import { QUEUED } from './composer.ts'
import { useReview } from './effects/review.ts'
import { useInbox } from './inbox.ts'
import { useSession } from './session.ts'
import { useSessions } from './sessions.ts'

const MAX_LISTED = 1000
const UNTITLED = 'New session'

/** A session with calls that need approval, open questions of MCP servers, or an open review. `calls` has the first of the calls. */
interface WaitingSession {
  sessionId: string
  title: string
  /** How many calls. */
  count: number
  calls: WaitingCall[]
  questions: WaitingQuestion[]
  review: { reviewId: string; files: number } | null
}

/**
 * Everything that waits for the person: calls, questions and reviews in all their sessions, calls of outside clients, and queued messages in other
 * sessions. The server tells what changes; the open session's own transcript is even newer.
 */
export const useWaiting = defineStore('waiting', () => {
  const session = useSession()
  const inbox = useInbox()
  const reviews = useReview()
  const list = useSessions()
  const known = ref(new Map<string, SessionSummary>())

  /** News that came since the list was requested. The reply may be older. */
  let since = new Map<string, SessionSummary | null>()
  function take(sessionId: string, summary: SessionSummary | null): void {
    if (summary && (summary.pendingApprovals > 0 || summary.questions || summary.review))
      known.value.set(sessionId, summary)
    else known.value.delete(sessionId)
  }
  async function load(): Promise<void> {
    const news = new Map<string, SessionSummary | null>()
    since = news
    const reply = await api.sessions({ limit: MAX_LISTED, waiting: true }).catch(() => null)
    if (!reply || since !== news) return
    known.value = new Map(reply.sessions.map((summary) => [summary.sessionId, summary]))
    for (const [sessionId, summary] of news) take(sessionId, summary)
  }
  onNews('session:changed', ({ sessionId, summary }) => {
    since.set(sessionId, summary)
    take(sessionId, summary)
  })
  // News that came while there was no connection is lost.
  watch(
    () => session.connected,
    (isConnected) => isConnected && void load(),
    { immediate: true }
  )

  const here = computed((): WaitingSession[] => {
    const { sessionId, pending, questions } = session
    const review = reviews.open && { reviewId: reviews.open.reviewId, files: reviews.open.changes.total }
    if (!session.isKnown || (pending.length === 0 && questions.length === 0 && !review)) return []
    const title = list.current?.title ?? UNTITLED
    return [{ sessionId, title, count: pending.length, calls: [...pending], questions, review }]
  })
  const sessions = computed((): WaitingSession[] => {
    const others = [...known.value.values()].filter(
      ({ sessionId }) => sessionId !== session.sessionId || !session.isKnown
    )
    return [
      ...here.value,
      ...others
        .toSorted((a, b) => b.activeAt - a.activeAt)
        .map(({ sessionId, title, pendingApprovals, waiting = [], questions = [], review = null }) => {
          return { sessionId, title, count: pendingApprovals, calls: waiting, questions, review }
        })
    ]
  })
  const reviewCount = computed(() => sessions.value.filter(({ review }) => review).length)
  const questionCount = computed(() => sessions.value.reduce((sum, { questions }) => sum + questions.length, 0))
  /** Calls in all sessions and of outside clients. */
  const callCount = computed(() => sessions.value.reduce((sum, each) => sum + each.count, inbox.cards.length))
  const count = computed(() => callCount.value + questionCount.value + reviewCount.value)
  /** One for each thing that waits, to notice new ones. */
  const ids = computed(() => [
    ...sessions.value.flatMap(({ sessionId, calls, questions, review }) => [
      ...calls.map(({ callId }) => `${sessionId} ${callId}`),
      ...questions.map(({ callId, id }) => `${sessionId} question ${callId} ${id}`),
      ...(review ? [`${sessionId} review ${review.reviewId}`] : [])
    ]),
    ...inbox.cards.map(({ id }) => id)
  ])
  /** Sessions in which this tab has queued messages. A queue changes in the open session only. */
  const queued = computed(() => {
    const { sessionId: openId } = session
    return recalled(QUEUED, 'tab')
      .filter((sessionId) => sessionId !== openId)
      .map((sessionId) => ({ sessionId, title: titleOf(sessionId) }))
  })
  const titleOf = (sessionId: string) =>
    (known.value.get(sessionId) ?? list.list.find((each) => each.sessionId === sessionId))?.title ?? UNTITLED

  return { sessions, count, callCount, questionCount, reviewCount, ids, queued }
})
