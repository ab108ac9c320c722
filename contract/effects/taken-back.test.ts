import { expect, it } from 'vitest'
import type { SessionEvent } from '../events.ts'
import { PROGRAMS } from '../own-sources.ts'
import { RUN_CODE } from '../programs.ts'
import { applyEvent, emptyTranscript } from '../transcript.ts'
import { hasKeptBesides, hasTakenBack, losesFork } from './taken-back.ts'

const changes = { changeId: 'review:r-t1', hash: 'h', total: 1, files: [{ path: 'a' }] }
const turn = (turnId: string) => [
  { type: 'user:message', data: { turnId, text: turnId } },
  { type: 'tool:approval_required', data: { callId: `c-${turnId}`, turnId, server: 'workspace', ahead: 'review' } },
  { type: 'tool:started', data: { callId: `c-${turnId}` } }
]
const byProgram = (turnId: string) => [
  { type: 'user:message', data: { turnId, text: turnId } },
  { type: 'tool:approval_required', data: { callId: 'prog', turnId, server: PROGRAMS, name: RUN_CODE } },
  { type: 'tool:started', data: { callId: 'prog' } },
  {
    type: 'tool:approval_required',
    data: { callId: 'inner', turnId, server: 'workspace', ahead: 'review', program: { callId: 'prog', n: 1 } }
  },
  { type: 'tool:started', data: { callId: 'inner' } }
]
const folded = (events: { type: string; data: object }[]) =>
  (events.map((event, at) => ({ ...event, seq: at + 1, at })) as SessionEvent[]).reduce(applyEvent, emptyTranscript())

it('says that going back discards what waits in a fork, also before its review is open', () => {
  const running = folded(turn('t1'))
  expect([1, 2, 3].map((from) => losesFork(running, from))).toEqual([true, true, false])
  const events = [
    ...turn('t1'),
    { type: 'turn:end', data: { turnId: 't1', reason: 'done' } },
    { type: 'review:opened', data: { reviewId: 'r-t1', turnId: 't1', changes } }
  ]
  expect([1, 6].map((from) => losesFork(folded(events), from))).toEqual([true, false])
  const grown = folded([...events, ...turn('t2')])
  expect([1, 6].map((from) => losesFork(grown, from))).toEqual([true, true])
  const message = folded([...events, { type: 'user:message', data: { turnId: 't2', text: 'only words' } }])
  expect(losesFork(message, 6)).toBe(false)
})

it('knows the changes of a program as those of a call', () => {
  const running = folded(byProgram('t1'))
  expect([losesFork(running, 1), losesFork(running, 3), hasKeptBesides(running)]).toEqual([true, false, true])
  const back = folded([...byProgram('t1'), { type: 'history:rewound', data: { from: 1 } }])
  expect([hasTakenBack(back), hasKeptBesides(back)]).toEqual([true, false])
})
