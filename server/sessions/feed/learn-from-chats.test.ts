import { expect, it } from 'vitest'
import type { Transcript } from '../../../contract/transcript.ts'
import { silentLogger } from '../../lib/logger.ts'
import type { StoredEvent } from '../../storage/event-log.ts'
import { learnFromChats } from './learn-from-chats.ts'
import { SessionFeed } from './session-feed.ts'

const user = (turnId: string, text: string) => ({ kind: 'user', turnId, text })
const call = (callId: string, turnId: string, server: string, name: string) => ({ callId, turnId, server, name })
const calls = [
  call('sandbox', 't1', 'workspace', 'read_file'),
  call('first', 't1', 'mail', 'list'),
  call('second', 't1', 'mail', 'send'),
  call('task', 't2', 'mail', 'send'),
  call('failed', 't3', 'mail', 'send'),
  call('last', 't4', 'mail', 'read')
]
const transcript = {
  entries: [
    user('t1', 'check my mail'),
    user('t2', 'a long task '.repeat(30)),
    user('t3', 'send it'),
    user('t4', 'read it')
  ],
  calls: Object.fromEntries(calls.map((each) => [each.callId, each]))
} as unknown as Transcript

// Checked: if every result counts, all five are learned.
it('learns the message and the first server tool that served it, and nothing from other results', async () => {
  const feed = new SessionFeed()
  const learned: unknown[] = []
  learnFromChats({
    ...{ feed, logger: silentLogger, ownerOf: async () => 'ann', transcript: async () => transcript },
    learn: (request, { server, name }, owner) => void learned.push([request, server, name, owner])
  })
  const result = (callId: string, isError = false) =>
    ({ type: 'tool:result', data: { callId, isError } }) as unknown as StoredEvent
  const events = [result('sandbox'), result('second'), result('task'), result('failed', true), result('unknown')]
  feed.stored('s1', [...events, result('first'), result('last')])
  await expect.poll(() => learned).toContainEqual(['read it', 'mail', 'read', 'ann'])
  expect(learned).toEqual([
    ['check my mail', 'mail', 'list', 'ann'],
    ['read it', 'mail', 'read', 'ann']
  ])
})
