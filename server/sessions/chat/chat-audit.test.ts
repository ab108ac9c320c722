import { afterEach, expect, it } from 'vitest'
import { noAudit, openCall } from '../../audit/audit.fixture.ts'
import type { Audit } from '../../audit/audit.ts'
import type { ToolSource } from '../../calls/tool-source.ts'
import { AppError } from '../../lib/errors.ts'
import { silentLogger } from '../../lib/logger.ts'
import { createPolicy } from '../../policy/approval-policy.ts'
import { recordRefusals } from '../feed/record-refusals.ts'
import { SessionFeed } from '../feed/session-feed.ts'
import { called, type FakeChat, type FakeChatOptions, fakeChat, said } from './fake-chat.ts'

let fake: FakeChat
const rows: unknown[] = []
afterEach(async () => {
  await fake.close()
  rows.length = 0
})

const audit: Audit = {
  ...noAudit,
  begin: ({ caller, server, tool, args }) => {
    const { door, session } = caller
    return openCall(({ outcome, code }) => rows.push([door, session, `${server}/${tool}`, args, outcome, code]))
  }
}

async function ask(call: ToolSource['call'], more: FakeChatOptions = {}): Promise<FakeChat> {
  const list = async () => [{ name: 'send', inputSchema: { type: 'object' } }]
  const model: FakeChatOptions['model'] = ({ messages }) =>
    messages.at(-1)?.role === 'tool' ? [said('done')] : [called('mail__send', '{"to":"you"}', 'c1')]
  const feed = new SessionFeed()
  const events: FakeChatOptions['events'] = (log) => ({
    read: (...args) => log.read(...args),
    lastSeq: (...args) => log.lastSeq(...args),
    bytes: (...args) => log.bytes(...args),
    remove: (...args) => log.remove(...args),
    async append(sessionId, list_, options) {
      const stored = await log.append(sessionId, list_, options)
      feed.stored(sessionId, stored)
      return stored
    }
  })
  fake = await fakeChat({ model, sources: [{ server: 'mail', list, call }], audit, events, ...more })
  const { chat } = fake
  const ownerOf = async () => 'someone'
  recordRefusals({ feed, transcript: (id) => chat.transcript(id), ownerOf, audit, logger: silentLogger })
  await chat.send('s1', { text: 'go' })
  await fake.until('tool:approval_required')
  return fake
}

const answer = async () => ({ content: [] })
const row = (...end: unknown[]) => ['chat', 's1', 'mail/send', { to: 'you' }, ...end]

it('has the calls of a chat on record, also those that fail', async () => {
  const { chat, until } = await ask(async () => {
    throw new AppError('unavailable', 'child_lost', 'gone', { details: { sent: true } })
  })
  await chat.decide('s1', { callId: 'c1', approved: true })
  await until('turn:end')
  expect(rows).toEqual([row('unknown', 'child_lost')])
})

it('has what a human edited on record, as it was run', async () => {
  const { chat, until } = await ask(answer)
  await chat.decide('s1', { callId: 'c1', approved: true, args: { to: 'me' } })
  await until('turn:end')
  expect(rows).toEqual([['chat', 's1', 'mail/send', { to: 'me' }, 'ok', undefined]])
})

it('has what a human refused on record', async () => {
  const { chat, until } = await ask(answer)
  await chat.decide('s1', { callId: 'c1', approved: false })
  await until('turn:end')
  await expect.poll(() => rows).toEqual([row('refused', 'approval_denied')])
})

it('has what a rule refused on record', async () => {
  const { until } = await ask(answer, { policy: createPolicy([{ glob: 'mail/*', rule: 'deny' }]) })
  await until('turn:end')
  await expect.poll(() => rows).toEqual([row('refused', 'denied_by_policy')])
})

it('makes no call that can not be recorded, and says so to the model', async () => {
  const calls: unknown[] = []
  const closed: Audit = {
    ...noAudit,
    begin: () => {
      throw new AppError('unavailable', 'audit_unavailable', 'The disk is full.')
    }
  }
  const call: ToolSource['call'] = async ({ args }) => {
    calls.push(args)
    return { content: [] }
  }
  const { chat, until } = await ask(call, { audit: closed })
  await chat.decide('s1', { callId: 'c1', approved: true })
  const { data } = await until('tool:result')
  expect([data.isError, JSON.stringify(data.content), calls]).toEqual([
    true,
    expect.stringContaining('disk is full'),
    []
  ])
})
