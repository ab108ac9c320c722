import { expect, it } from 'vitest'
import type { SessionEvent } from '../../../contract/events.ts'
import { applyEvent, emptyTranscript } from '../../../contract/transcript.ts'
import type { StoredEvent } from '../../storage/event-log.ts'
import { BranchedEvents } from './branched-events.ts'

const changes = { changeId: 'review:r-t1', hash: 'h', total: 1, files: [{ path: 'a.txt' }] }
const CALL = { callId: 'c', turnId: 't1', server: 'workspace', name: 'write_file', args: {}, definition: '', hash: '' }
const FORKED = [
  { type: 'user:message', data: { turnId: 't1', text: 'go' } },
  { type: 'tool:approval_required', data: { ...CALL, queuePosition: 1, totalInQueue: 1, ahead: 'review' } },
  { type: 'tool:approval_resolved', data: { callId: 'c', approved: true, by: 'review' } },
  { type: 'tool:started', data: { callId: 'c' } },
  { type: 'tool:result', data: { callId: 'c', isError: false, content: [], isForked: true, changes } }
]
const OPENED = { type: 'review:opened', data: { reviewId: 'r-t1', turnId: 't1', changes } }

// Seen before: the branch of a running turn still had a fork, and its model took the files of that for its own.
it.each([
  ['a turn runs', FORKED],
  ['a review is open', [...FORKED, { type: 'turn:end', data: { turnId: 't1', reason: 'done' } }, OPENED]]
])('discards in the branch what waits in a fork while %s', (_, events) => {
  const branched = new BranchedEvents()
  const taken = events.flatMap((event, at) => branched.take({ ...event, seq: at + 1, at: 0 } as StoredEvent))
  const copy = [...taken, ...branched.end('Title')].map((event, at) => ({ ...event, seq: at + 1, at: 0 }))
  const { forkedTurn, review, unapplied, entries } = (copy as SessionEvent[]).reduce(applyEvent, emptyTranscript())
  expect({ forkedTurn, review, unapplied }).toEqual({ forkedTurn: null, review: null, unapplied: 'r-t1' })
  const reviews = entries.filter(({ kind }) => kind === 'review')
  expect(reviews).toMatchObject([{ changes: { total: 1 }, decision: { accept: 'none', by: 'cancel' } }])
})
