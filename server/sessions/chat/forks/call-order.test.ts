import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { ApprovalMode } from '../../../../contract/effects/modes.ts'
import { createPolicy } from '../../../policy/approval-policy.ts'
import { FakeConnection } from '../../../sandbox/fake-engine.ts'
import { type FakeSessions, fakeSessions } from '../../sandboxes/fake-sessions.ts'
import type { SessionManager } from '../../sandboxes/session-manager.ts'
import { type FakeChat, type FakeChatOptions, fakeChat, said } from '../fake-chat.ts'

let sessions: FakeSessions
let manager: SessionManager
let fake: FakeChat
let order: string[]

beforeEach(async () => {
  sessions = await fakeSessions()
  order = []
  const { callTool } = FakeConnection.prototype
  vi.spyOn(FakeConnection.prototype, 'callTool').mockImplementation(async function (this: FakeConnection, name, args) {
    order.push(`${args.content} begins`)
    // The earlier a call is, the longer it takes: without order, the last one ends first.
    await new Promise((resolve) => setTimeout(resolve, 40 - 10 * Number(args.content)))
    const result = await callTool.call(this, name, args)
    order.push(`${args.content} ends`)
    return result
  })
})
afterEach(async () => {
  vi.restoreAllMocks()
  await fake.close()
  await sessions.close()
})

/** One step that writes the same file three times. */
async function open(mode: ApprovalMode, more: FakeChatOptions = {}): Promise<void> {
  manager = await sessions.start('a')
  const usage = { inputTokens: 1, outputTokens: 1 }
  const parts = [1, 2, 3].map((n) => {
    const args = JSON.stringify({ path: 'a.txt', content: `${n}` })
    // Ids that are numbers come in another order out of an object.
    return { type: 'tool-call' as const, callId: `${9 - n}`, name: 'write_file', args }
  })
  fake = await fakeChat({
    model: (_, step) => (step === 0 ? [{ type: 'done', parts, finish: 'tool-calls', usage }] : [said('ok')]),
    options: { mode },
    on: { store: sessions.store, sessions: manager },
    ...more
  })
  await fake.chat.send('s1', { text: 'go' })
}

const ONE_BY_ONE = ['1 begins', '1 ends', '2 begins', '2 ends', '3 begins', '3 ends']
const content = () => [...sessions.engine.containers.values()][0]?.files.get('a.txt')
const results = async () =>
  (await fake.log()).flatMap(({ type, data }) => (type === 'tool:result' ? [data] : [])) as {
    callId: string
    changes?: { hash: string }
  }[]

// If both calls ran at once, the first one's content could win.
it('runs the calls of a step to the sandbox in their order, although all are approved at once', async () => {
  await open('ask', { policy: createPolicy([{ server: 'workspace', glob: '*', rule: 'allow' }]) })
  await fake.until('turn:end')
  expect(order).toEqual(ONE_BY_ONE)
  expect(content()).toBe('3')
  expect((await results()).map(({ callId }) => callId)).toEqual(['8', '7', '6'])
})

// Seen before: the first call was said to have changed what the last one did.
it('does so in a review, so that each result says what the fork had until then', async () => {
  await open('review')
  await fake.until('review:opened')
  expect(order).toEqual(ONE_BY_ONE)
  expect(new Set((await results()).map(({ changes }) => changes?.hash)).size).toBe(3)
})

it('does not run a call while an earlier one of the step waits for a decision', async () => {
  await open('ask')
  await fake.until('tool:approval_required', ({ callId }) => callId === '6')
  await fake.chat.decide('s1', { callId: '6', approved: true })
  await fake.chat.decide('s1', { callId: '8', approved: true })
  await fake.until('tool:result', ({ callId }) => callId === '8')
  expect(order).toEqual(['1 begins', '1 ends'])
  await fake.chat.decide('s1', { callId: '7', approved: false })
  await fake.until('tool:started', ({ callId }) => callId === '6')
  await fake.until('turn:end')
  expect(order).toEqual(['1 begins', '1 ends', '3 begins', '3 ends'])
})

// Seen before: the second call ran in the workspace while the first one's changes were being put there, and ended below them.
it('lets no call that "Always allow" covers overtake the preview that is being kept', async () => {
  await open('preview')
  const { data } = await fake.until('tool:previewed')
  const { restore } = FakeConnection.prototype
  vi.spyOn(FakeConnection.prototype, 'restore').mockImplementationOnce(async function (this: FakeConnection, params) {
    await new Promise((resolve) => setTimeout(resolve, 100))
    order.push('1 is kept')
    return restore.call(this, params)
  })
  await fake.chat.decide('s1', { callId: '8', approved: true, hash: String(data.hash), remember: true })
  await fake.until('turn:end')
  expect(order).toEqual(['1 begins', '1 ends', '1 is kept', '2 begins', '2 ends', '3 begins', '3 ends'])
  expect(content()).toBe('3')
})
