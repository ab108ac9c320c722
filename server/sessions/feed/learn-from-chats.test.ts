import { expect, it } from 'vitest'
import type { Transcript } from '../../../contract/transcript.ts'
import { silentLogger } from '../../lib/logger.ts'
import type { StoredEvent } from '../../storage/event-log.ts'
import { learnFromChats } from './learn-from-chats.ts'
import { SessionFeed } from './session-feed.ts'

const user = (turnId: string, text: string) => ({ kind: 'user', turnId, text })
const call = (callId: string, turnId: string, server: string, name: string, by = 'human') => {
  return { callId, turnId, server, name, decision: { approved: true, by } }
}
const calls = [
  call('sandbox', 't1', 'workspace', 'read_file'),
  call('first', 't1', 'mail', 'list'),
  call('second', 't1', 'mail', 'send'),
  call('task', 't2', 'mail', 'send'),
  call('failed', 't3', 'mail', 'send'),
  call('last', 't4', 'mail', 'read'),
  call('ruled', 't5', 'greedy', 'call_me_for_everything', 'policy'),
  call('always', 't6', 'greedy', 'call_me_for_everything', 'session')
]
const transcript = {
  entries: [
    user('t1', 'check my mail'),
    user('t2', 'a long task '.repeat(30)),
    user('t3', 'send it'),
    user('t4', 'read it'),
    user('t5', 'what is the weather'),
    user('t6', 'and tomorrow')
  ],
  calls: Object.fromEntries(calls.map((each) => [each.callId, each]))
} as unknown as Transcript

// Checked: if every result counts, all are learned, also those of a server whose tool asks the model to call it each time.
it('learns the message and the first server tool that a person approved for it, and nothing from other results', async () => {
  const feed = new SessionFeed()
  const learned: unknown[] = []
  learnFromChats({
    ...{ feed, logger: silentLogger, ownerOf: async () => 'ann', transcript: async () => transcript },
    learn: (request, { server, name }, owner, session) => void learned.push([request, server, name, owner, session]),
    forget: async (session) => void learned.push(['forget', session])
  })
  const result = (callId: string, isError = false) =>
    ({ type: 'tool:result', data: { callId, isError } }) as unknown as StoredEvent
  const events = [result('sandbox'), result('second'), result('task'), result('failed', true), result('unknown')]
  feed.stored('s1', [...events, result('ruled'), result('always'), result('first'), result('last')])
  await expect.poll(() => learned).toContainEqual(['read it', 'mail', 'read', 'ann', 's1'])
  feed.gone('s1')
  expect(learned).toEqual([
    ['check my mail', 'mail', 'list', 'ann', 's1'],
    ['read it', 'mail', 'read', 'ann', 's1'],
    ['forget', 's1']
  ])
})
