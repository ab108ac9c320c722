import { expect, it } from 'vitest'
import type { EventLog, StoredEvent } from '../storage/event-log.ts'
import { Conversation } from './conversation.ts'

const event = (seq: number, type: string, data: Record<string, unknown>, at = seq): StoredEvent => ({
  seq,
  at,
  type,
  data
})
const FULL = [
  event(1, 'model:selected', { model: 'demo/demo' }),
  event(2, 'user:message', { turnId: 't1', text: 'one' }),
  event(3, 'turn:end', { turnId: 't1', reason: 'done' }),
  event(4, 'user:message', { turnId: 't2', text: 'two' })
]

/** A log of which the last events may be lost. */
function open() {
  const state = { events: FULL }
  const read: EventLog['read'] = async (_, { after = 0, limit = 2 } = {}) => state.events.slice(after, after + limit)
  const unused = () => Promise.reject(new Error('not in this test'))
  return {
    state,
    conversation: new Conversation({ read, append: unused, lastSeq: unused, bytes: unused, remove: unused }, 's')
  }
}

it('reads on where it was', async () => {
  const { state, conversation } = open()
  state.events = FULL.slice(0, 3)
  expect(await conversation.refresh()).toMatchObject({ seq: 3, turnId: null, turns: 1 })
  state.events = FULL
  expect(await conversation.refresh()).toMatchObject({ seq: 4, turnId: 't2', turns: 2 })
  expect(await conversation.refresh()).toMatchObject({ seq: 4, turnId: 't2', turns: 2 })
  expect(conversation.recent).toEqual(FULL.slice(1))
})

it.each([
  ['removed', [], { seq: 0, turnId: null, model: null, turns: 0 }],
  ['shortened', FULL.slice(0, 3), { seq: 3, turnId: null, turns: 1 }],
  ['replaced by a shorter one', [event(1, 'model:selected', { model: 'x/y' }, 9)], { seq: 1, model: 'x/y', turns: 0 }],
  [
    'replaced by one of the same length',
    [...FULL.slice(0, 3), event(4, 'history:reset', {}, 9)],
    { seq: 4, turnId: null, turns: 1 }
  ]
])('forgets what it knew of a log that was %s', async (_, events, expected) => {
  const { state, conversation } = open()
  expect((await conversation.refresh()).turnId).toBe('t2')
  state.events = events
  expect(await conversation.refresh()).toMatchObject(expected)
  expect(conversation.transcript).toMatchObject(expected)
  expect(conversation.recent.length).toBeLessThanOrEqual(events.length)
})
