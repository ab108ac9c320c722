import { expect, it } from 'vitest'
import type { SessionEvent } from '../../../contract/events.ts'
import { PROGRAMS } from '../../../contract/own-sources.ts'
import { RUN_CODE } from '../../../contract/programs.ts'
import { applyEvent, emptyTranscript } from '../../../contract/transcript.ts'
import { forkedCall, forkedCallIds, undoableChange } from './forked-call.ts'

const summary = (...paths: string[]) => {
  const files = paths.map((path) => ({ path, after: { type: 'file', mode: 0o644, size: 1, hash: path } }))
  return { changeId: 'review:r', hash: paths.join(), total: files.length, files }
}
const ran = (callId: string, more: object, changes: object) => [
  { type: 'tool:approval_required', data: { callId, turnId: 't', server: 'workspace', name: 'x', args: {}, ...more } },
  { type: 'tool:approval_resolved', data: { callId, approved: true, by: 'review' } },
  { type: 'tool:result', data: { callId, isError: false, content: [], isForked: true, changes } }
]
const inner = (n: number) => ({ program: { callId: 'prog', n } })
const transcript = [
  { type: 'user:message', data: { turnId: 't', text: 'go' } },
  ...ran('first', {}, summary('a')),
  { type: 'tool:approval_required', data: { callId: 'prog', turnId: 't', server: PROGRAMS, name: RUN_CODE, args: {} } },
  ...ran('one', inner(1), summary('a', 'b')),
  ...ran('two', inner(2), summary('a', 'b', 'c')),
  ...ran('last', {}, summary('a', 'b', 'c', 'd')),
  { type: 'review:opened', data: { reviewId: 'r', turnId: 't', changes: summary('a', 'b', 'c', 'd') } }
]
  .map((event, at) => ({ ...event, seq: at + 1, at }) as SessionEvent)
  .reduce(applyEvent, emptyTranscript())

it('lists a program among the calls of a review if a call of it ran in the fork', () => {
  expect(forkedCallIds(transcript)).toEqual(['first', 'prog', 'last'])
})

it('says what each call of a fork has changed, those of programs too', () => {
  const changed = (callId: string) => forkedCall(transcript, callId).files?.map(({ path }) => path)
  expect(['first', 'one', 'two', 'last'].map(changed)).toEqual([['a'], ['b'], ['c'], ['d']])
  expect(forkedCall(transcript, 'one').state).toBe('waiting')
})

const after = (...events: object[]) =>
  events
    .map((event, at) => ({ ...event, seq: transcript.seq + at + 1, at: 0 }) as SessionEvent)
    .reduce(applyEvent, structuredClone(transcript))
const revert = (of: string, id: string, paths: string[], scope = 'one') => ({
  type: 'files:reverted',
  data: { of, scope, changes: { ...summary(...paths), changeId: id }, by: 'human' }
})

it('offers to undo a call of a review only when something of it was accepted', () => {
  const { hash } = summary('a', 'b', 'c', 'd')
  const resolved = { type: 'review:resolved', data: { reviewId: 'r', hash, accept: ['a', 'c'], by: 'human' } }
  const accepted = { ...summary('a', 'c'), changeId: 'review:r' }
  const data = { reviewId: 'r', rejected: ['b', 'd'], rejectedTotal: 2, changes: accepted }
  const decided = after(resolved, { type: 'review:applied', data })
  const offers = (where: typeof transcript) => ['first', 'one', 'two', 'last'].map((id) => undoableChange(where, id))
  expect(offers(transcript)).toEqual([undefined, undefined, undefined, undefined])
  expect(offers(decided)).toEqual(['part:first', undefined, 'part:two', undefined])
  const undone = { of: 'review:r', scope: 'one', changes: { ...accepted, changeId: 'revert:1' }, by: 'human' }
  const reverted = after(resolved, { type: 'review:applied', data }, { type: 'files:reverted', data: undone })
  expect(offers(reverted)).toEqual([undefined, undefined, undefined, undefined])
})

// Seen before: the menu of a call offered to undo it once more.
it('offers no change that was undone, unless the revert was undone too', () => {
  const { hash } = summary('a', 'b', 'c', 'd')
  const accepted = [
    { type: 'review:resolved', data: { reviewId: 'r', hash, accept: 'all', by: 'human' } },
    {
      type: 'review:applied',
      data: { reviewId: 'r', rejected: [], rejectedTotal: 0, changes: summary('a', 'b', 'c', 'd') }
    }
  ]
  const first = (...reverts: object[]) => {
    const conversation = after(...accepted, ...reverts)
    return [undoableChange(conversation, 'first'), forkedCall(conversation, 'first').state]
  }
  const offered = ['part:first', 'accepted']
  const undone = [undefined, 'undone']
  const once = revert('part:first', 'revert:1', ['a'])
  expect(first()).toEqual(offered)
  expect(first(once)).toEqual(undone)
  expect(first(revert('part:two', 'revert:1', ['c']))).toEqual(offered)
  expect(first(once, revert('revert:1', 'revert:2', ['a']))).toEqual(offered)
  expect(first(once, revert('revert:1', 'revert:2', ['a']), revert('revert:2', 'revert:3', ['a']))).toEqual(undone)
  expect(first(once, revert('revert:1', 'revert:2', ['a'], 'since'))).toEqual(offered)
})

it('counts a change of the workspace as undone when all of its files are back', () => {
  const changes = { ...summary('a', 'b'), changeId: 'call:w' }
  const data = { callId: 'w', turnId: 't', server: 'workspace', name: 'x', args: {} }
  const ran = [
    { type: 'tool:approval_required', data },
    { type: 'tool:result', data: { callId: 'w', isError: false, content: [], changes } }
  ]
  const offer = (...reverts: object[]) => undoableChange(after(...ran, ...reverts), 'w')
  const [a, b] = [revert('call:w', 'revert:1', ['a']), revert('call:w', 'revert:2', ['b'])]
  expect([offer(), offer(a), offer(a, b)]).toEqual(['call:w', 'call:w', undefined])
  expect(offer(a, b, revert('call:w', 'revert:3', ['a'], 'since'))).toBeUndefined()
  expect(offer(a, b, revert('revert:2', 'revert:3', ['b']))).toBe('call:w')
})
