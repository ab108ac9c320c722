import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ranMs } from './call-entry.ts'
import type { ChangedFile } from './effects/change-set.ts'
import { APPROVAL_MODES } from './effects/modes.ts'
import { DECIDERS, type SessionEvent, TURN_END_REASONS } from './events.ts'
import { ANSWER_ACTIONS } from './questions/questions.ts'
import { applyEvent, callOf, emptyTranscript, pendingCalls, type Transcript } from './transcript.ts'

/** Few ids, so that events meet; some that every object has. */
const callId = fc.constantFrom('c1', 'c2', 'c3', '__proto__', 'constructor', 'hasOwnProperty')
const turnId = fc.constantFrom('t1', 't2', 't3')
const text = fc.string({ maxLength: 20 })
const args = fc.dictionary(fc.string({ maxLength: 5 }), fc.jsonValue({ maxDepth: 1 }), { maxKeys: 3 })
const server = fc.constantFrom('workspace', '__proto__')

const changes = fc.record({
  changeId: callId,
  hash: fc.constantFrom('h1', 'h2'),
  total: fc.nat(3),
  files: fc.constant<ChangedFile[]>([])
})
const reviewId = fc.constantFrom('r1', 'r2')

const DATA: { [T in SessionEvent['type']]: fc.Arbitrary<Extract<SessionEvent, { type: T }>['data']> } = {
  'user:message': fc.record({ turnId, text }),
  'files:added': fc.record({
    turnId,
    files: fc.array(fc.record({ path: text, size: fc.nat(), attachment: text }), { maxLength: 2 })
  }),
  'agent:response': fc.record({ turnId, text }),
  'tools:offered': fc.record({ turnId, tools: fc.array(fc.record({ server, name: text }), { maxLength: 2 }) }),
  'tool:approval_required': fc.record({
    callId,
    turnId,
    server,
    name: text,
    args,
    definition: text,
    hash: text,
    queuePosition: fc.nat(5),
    totalInQueue: fc.nat(5),
    ahead: fc.constantFrom(undefined, 'preview' as const, 'review' as const)
  }),
  'tool:approval_resolved': fc.record({ callId, approved: fc.boolean(), by: fc.constantFrom(...DECIDERS) }),
  'tool:started': fc.record({ callId }),
  'tool:result': fc.record({ callId, isError: fc.boolean(), content: fc.array(fc.jsonValue({ maxDepth: 1 })) }),
  'tool:question': fc.record({ callId, id: text, message: text, expiresAt: fc.nat() }),
  'tool:question_answered': fc.record({
    callId,
    id: text,
    action: fc.constantFrom(...ANSWER_ACTIONS),
    by: fc.constantFrom('human', 'deadline')
  }),
  'agent:error': fc.record({ code: text, message: text }),
  'turn:end': fc.record({ turnId, reason: fc.constantFrom(...TURN_END_REASONS) }),
  'turn:reopened': fc.record({ turnId, of: turnId, from: fc.nat(60) }),
  usage: fc.record({ turnId, inputTokens: fc.nat(), outputTokens: fc.nat() }),
  'session:notice': fc.oneof(
    fc.record({ code: text, message: text }),
    fc.record({
      code: fc.constant('files_changed'),
      message: text,
      files: fc.array(fc.record({ action: fc.constantFrom('uploaded', 'deleted'), path: text }), { maxLength: 3 })
    })
  ),
  'session:settings': fc.record({
    effort: fc.constantFrom(undefined, 'off' as const, 'high' as const),
    instructions: text
  }),
  'model:selected': fc.record({ model: text, history: fc.constantFrom(undefined, 'fresh' as const, 'keep' as const) }),
  'history:reset': fc.constant({}),
  'tool:allowed': fc.record({ server, name: text, definition: text }),
  'tool:allow_revoked': fc.record({ server, name: text }),
  'limit:raised': fc.record({ tokens: fc.nat() }),
  'mode:selected': fc.record({ mode: fc.constantFrom(...APPROVAL_MODES) }),
  'tool:previewed': fc.record({
    callId,
    changes,
    hash: text,
    result: fc.record({ isError: fc.boolean(), content: fc.constant([]) })
  }),
  'tool:preview_refused': fc.record({ callId, code: text, reason: text }),
  'review:opened': fc.record({ reviewId, turnId, changes }),
  'review:resolved': fc.record({
    reviewId,
    hash: fc.constantFrom('h1', 'h2'),
    accept: fc.constantFrom('all' as const, 'none' as const),
    by: fc.constantFrom('human', 'cancel')
  }),
  'review:applied': fc.record({ reviewId, rejected: fc.array(text, { maxLength: 2 }), rejectedTotal: fc.nat(2) }),
  'files:reverted': fc.record({
    of: callId,
    scope: fc.constantFrom('one', 'since'),
    changes,
    by: fc.constant('human' as const)
  }),
  'history:rewound': fc.record({ from: fc.nat(60), by: fc.constant('human' as const) }),
  'history:restored': fc.record({ of: fc.nat(60), by: fc.constant('human' as const) })
}

const events = fc
  .array(
    fc.constantFrom(...(Object.keys(DATA) as SessionEvent['type'][])).chain((type) => {
      return fc.record({ type: fc.constant(type), data: DATA[type] })
    }),
    { maxLength: 60 }
  )
  .map((list) => list.map((event, at) => ({ ...event, seq: at + 1, at: 1000 + at }) as SessionEvent))

const fold = (list: SessionEvent[], from: Transcript = emptyTranscript()) => list.reduce(applyEvent, from)
/** As it goes over the wire. */
const sent = (transcript: Transcript): Transcript => JSON.parse(JSON.stringify(transcript))

describe('the fold', () => {
  it('takes any events in any order, and leaves every other object alone', () => {
    fc.assert(
      fc.property(events, (list) => {
        const { seq } = fold(list)
        expect(seq).toBe(list.length)
        expect(Object.keys(Object.prototype)).toEqual([])
        expect(Object.keys(Object)).toEqual([])
        expect('decision' in {}).toBe(false)
      })
    )
  })

  it('gives the same from a snapshot and the rest as from all', () => {
    fc.assert(
      fc.property(events, fc.nat(60), (list, cut) => {
        const snapshot = sent(fold(list.slice(0, cut)))
        expect(sent(fold(list.slice(cut), snapshot))).toEqual(sent(fold(list)))
      })
    )
  })

  it('keeps the first decision, start and result of a call, and no open question outlives its turn', () => {
    fc.assert(
      fc.property(events, (list) => {
        const transcript = fold(list)
        for (const call of pendingCalls(transcript)) expect(call.turnId).toBe(transcript.turnId)
        for (const call of Object.values(transcript.calls)) {
          const asked = list.find(({ type, data }) => type === 'tool:approval_required' && data.callId === call.callId)
          const after = list.slice(asked?.seq ?? 0)
          const decided = after.find(
            ({ type, data }) => type === 'tool:approval_resolved' && data.callId === call.callId
          )
          if (call.decision && call.decision.by !== 'cancel') expect(call.decision.at).toBe(decided?.at)
          const ended = after.find(({ type, data }) => type === 'tool:result' && data.callId === call.callId)
          expect(call.result?.at).toBe(ended?.at)
        }
      })
    )
  })
})

describe('a call', () => {
  const ask = (seq: number, turn = 't1'): SessionEvent => ({
    type: 'tool:approval_required',
    seq,
    at: seq,
    data: {
      callId: 'c1',
      turnId: turn,
      server: 'workspace',
      name: 'read_file',
      args: {},
      definition: 'd',
      hash: 'h',
      queuePosition: 1,
      totalInQueue: 1
    }
  })
  const message: SessionEvent = { type: 'user:message', seq: 1, at: 1, data: { turnId: 't1', text: 'hi' } }
  const end: SessionEvent = { type: 'turn:end', seq: 3, at: 3, data: { turnId: 't1', reason: 'error' } }
  const yes: SessionEvent = {
    type: 'tool:approval_resolved',
    seq: 4,
    at: 4,
    data: { callId: 'c1', approved: true, by: 'human' }
  }

  it('that nobody decided is dropped when its turn ends; a later approval changes nothing', () => {
    const transcript = fold([message, ask(2), end, yes])
    expect(pendingCalls(transcript)).toEqual([])
    expect(callOf(transcript, 'c1')?.decision).toMatchObject({ approved: false, by: 'cancel' })
  })

  it('that is asked for after its turn was stopped is never open', () => {
    const transcript = fold([message, { ...end, seq: 2 }, ask(3), yes])
    expect(callOf(transcript, 'c1')?.decision?.approved).toBe(false)
  })
  it('of a turn that never ended is dropped when the next one starts', () => {
    const next: SessionEvent = { ...message, seq: 3, data: { turnId: 't2', text: 'again' } }
    const transcript = fold([message, ask(2), next, yes])
    expect(pendingCalls(transcript)).toEqual([])
    expect(callOf(transcript, 'c1')?.decision?.approved).toBe(false)
  })
})

it('shows the files that a person changed one after the other as one entry', () => {
  const transcript = emptyTranscript()
  const uploads = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((path) => ({ action: 'uploaded' as const, path }))
  const changes = [...uploads, { action: 'moved' as const, path: 'a', to: 'x/a' }]
  changes.forEach((change, at) => {
    const data = { code: 'files_changed', message: '', files: [change] }
    applyEvent(transcript, { type: 'session:notice', seq: at + 1, at, data })
  })
  expect(transcript.entries).toMatchObject([
    { seq: 1, message: 'You uploaded a, b, c, d, e and 2 more files, and moved a to x/a.' }
  ])
})

// Seen before: a kept preview was said to have run for 0 ms, because its start and its end are one append.
it('knows how long a call itself ran, without the wait of the person', () => {
  const asked = { callId: 'c', turnId: 't1', server: 's', name: 'n', args: {}, definition: '', hash: '' }
  const call = { ...asked, queuePosition: 1, totalInQueue: 1, requestedAt: 0 }
  const result = { isError: false, content: [], at: 9000 }
  const changes = { changeId: 'call:c', hash: 'h', total: 0, files: [] }
  const preview = { changes, hash: 'h', result, at: 700, durationMs: 500 }
  expect(ranMs(call)).toBeUndefined()
  expect(ranMs({ ...call, preview })).toBe(500)
  expect(ranMs({ ...call, preview, startedAt: 9000, result: { ...result, durationMs: 500 } })).toBe(500)
  expect(ranMs({ ...call, startedAt: 8000, result })).toBe(1000)
  expect(ranMs({ ...call, startedAt: 8000 })).toBeUndefined()
})

// Seen before: after the files were put back, the review and its calls still said "accepted".
it('marks a review as undone once what it put into the workspace is reverted', () => {
  const accepted = { changeId: 'review:r', hash: 'h', total: 2, files: [] }
  const reviewAfter = (scope: 'one' | 'since', total: number) => {
    const transcript = emptyTranscript()
    const events = [
      { type: 'review:opened', data: { reviewId: 'r', turnId: 't1', changes: accepted } },
      { type: 'review:resolved', data: { reviewId: 'r', hash: 'h', accept: 'all', by: 'human' } },
      { type: 'review:applied', data: { reviewId: 'r', changes: accepted, rejected: [], rejectedTotal: 0 } },
      { type: 'files:reverted', data: { of: 'review:r', scope, changes: { ...accepted, total }, by: 'human' } }
    ]
    for (const [at, event] of events.entries()) applyEvent(transcript, { ...event, seq: at + 1, at } as SessionEvent)
    return transcript.entries.find(({ kind }) => kind === 'review')
  }
  expect(reviewAfter('since', 2)).toMatchObject({ undone: true })
  expect(reviewAfter('one', 2)).toMatchObject({ undone: true })
  expect(reviewAfter('one', 1)).not.toHaveProperty('undone')
})
