import type { SearchReply, SessionSummary } from '../../../contract/rest.ts'
import { openQuestions, pendingCalls } from '../../../contract/transcript.ts'
import type { FakeSession } from '../fake-server.ts'

export function summaryOf({ id, transcript, marks, activeAt }: FakeSession): SessionSummary {
  const first = transcript.entries.find((entry) => entry.kind === 'user')
  const waiting = pendingCalls(transcript)
  const questions = openQuestions(transcript).map(({ call: { callId, server, name }, question: { id, at } }) => ({
    ...{ callId, id, server, name, at }
  }))
  return {
    sessionId: id,
    title: first?.kind === 'user' ? first.text.slice(0, 60) : '',
    model: 'demo/demo',
    createdAt: Date.now(),
    activeAt,
    sandbox: 'running' as const,
    recycleInMs: 800_000,
    pendingApprovals: waiting.length,
    ...(waiting.length > 0 && { waiting }),
    ...(questions.length > 0 && { questions }),
    ...(transcript.review && {
      review: { reviewId: transcript.review.reviewId, files: transcript.review.changes.total }
    }),
    isPinned: false,
    isArchived: false,
    ...marks
  }
}

const FEW = 3

export function searched(all: readonly FakeSession[], query: URLSearchParams): SearchReply {
  const text = query.get('q') ?? ''
  const only = query.get('session')
  const sessions = only === null ? all : all.filter(({ id }) => id === only)
  const hits = sessions.map((session) => ({
    summary: summaryOf(session),
    matches: session.transcript.entries.flatMap((entry) => {
      if (entry.kind !== 'user' && entry.kind !== 'agent') return []
      const from = entry.text.toLowerCase().indexOf(text.toLowerCase())
      if (from < 0) return []
      const end = from + text.length
      const [before, match, after] = [entry.text.slice(0, from), entry.text.slice(from, end), entry.text.slice(end)]
      return [{ seq: entry.seq, at: entry.at, by: entry.kind, before, match, after }]
    })
  }))
  const found = hits.filter(({ matches }) => matches.length > 0)
  const shown = found.map(({ summary, matches }) => {
    const newest = matches.toReversed()
    return { summary, matches: only === null ? newest.slice(0, FEW) : newest, total: matches.length }
  })
  return { hits: shown, isComplete: true }
}
