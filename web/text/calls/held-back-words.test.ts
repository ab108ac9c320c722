import { expect, it } from 'vitest'
import type { CallEntry } from '../../../contract/transcript.ts'
import { heldBackWords } from './held-back-words.ts'

const call = (callId: string, queuePosition: number, more: Partial<CallEntry> = {}): CallEntry => ({
  ...{ callId, turnId: 't', server: 'workspace', name: 'read_file', args: {}, definition: '', hash: '' },
  ...{ queuePosition, totalInQueue: 3, requestedAt: 1 },
  ...more
})
const approved = { decision: { approved: true, by: 'human' as const, at: 2 } }
const words = (...calls: CallEntry[]) =>
  heldBackWords({ calls: Object.fromEntries(calls.map((each) => [each.callId, each])) }, calls.at(-1) ?? call('x', 1))

// Seen before: "Starting…", for as long as an earlier card waited.
it('says what an approved call waits for', () => {
  expect(words(call('a', 1), call('b', 2, approved))).toBe('Waits for your decision on call 1 of 3')
  expect(words(call('a', 1), call('b', 2), call('c', 3, approved))).toBe('Waits for your decision on 2 earlier calls')
  expect(words(call('a', 1, { ...approved, startedAt: 3 }), call('b', 2, approved))).toBe(
    'Waits for the call before it'
  )
})

it('says nothing about calls that wait for nothing', () => {
  expect(words(call('b', 2, approved))).toBeUndefined()
  expect(words(call('c', 3), call('b', 2, approved))).toBeUndefined()
  expect(words(call('a', 1, { turnId: 'other' }), call('b', 2, approved))).toBeUndefined()
  expect(words(call('a', 1), call('b', 2, { ...approved, server: 'shop' }))).toBeUndefined()
  expect(words(call('a', 1), call('b', 2, { ...approved, startedAt: 3 }))).toBeUndefined()
})
