import { afterEach, expect, it, vi } from 'vitest'
import type { ToolSource } from '../../calls/tool-source.ts'
import { called, type FakeChat, type FakeChatOptions, fakeChat, said } from './fake-chat.ts'

let fake: FakeChat
afterEach(() => fake.close())

const twentyCalls: NonNullable<FakeChatOptions['model']> = (_, step) => {
  const parts = Array.from({ length: 20 }, (_, n) => {
    return { type: 'tool-call' as const, callId: `c${n}`, name: 'mail__send', args: `{"n":${n}}` }
  })
  const usage = { inputTokens: 1, outputTokens: 1 }
  return step === 0 ? [{ type: 'done', parts, finish: 'tool-calls', usage }] : [said('done')]
}

/** With every call allowed. */
async function open(call: ToolSource['call']): Promise<FakeChat> {
  const list = async () => [{ name: 'send', description: 'Sends a mail.', inputSchema: { type: 'object' } }]
  fake = await fakeChat({ model: twentyCalls, sources: [{ server: 'mail', list, call }], policy: () => 'allow' })
  return fake
}

it('an approved call waits its turn when many of one step are approved: at most 8 run at once', async () => {
  const calls: unknown[] = []
  const running = new Set<unknown>()
  let most = 0
  const { chat, until } = await open(async ({ args }) => {
    running.add(args)
    most = Math.max(most, running.size)
    await new Promise((resolve) => setTimeout(resolve, 5))
    running.delete(args)
    calls.push(args)
    return { content: [] }
  })
  await chat.send('s1', { text: 'go' })
  await until('turn:end')
  expect(calls).toHaveLength(20)
  expect(most).toBe(8)
})

it('an approved call that had not started when the turn was stopped is reported as not run', async () => {
  const stalls: ToolSource['call'] = ({ signal }) =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  const { chat, until, log } = await open(stalls)
  await chat.send('s1', { text: 'go' })
  await until('tool:started', ({ callId }) => callId === 'c7')
  await chat.cancel('s1')
  const results = async () => (await log()).filter(({ type }) => type === 'tool:result').map(({ data }) => data.callId)
  await vi.waitFor(async () => expect(new Set(await results()).size).toBe(20))
  expect((await log()).filter(({ type }) => type === 'tool:started')).toHaveLength(8)
  const last = await until('tool:result', ({ callId }) => callId === 'c19')
  expect(JSON.stringify(last.data)).toContain('It was not run')
})

// Seen before: after two switches of the model, a vendor got two calls with one id.
it('two calls that can not be run and have the same id get an id each', async () => {
  fake = await fakeChat({ model: (_, step) => (step < 2 ? [called('launch', '{}', 'call_0')] : [said('done')]) })
  await fake.chat.send('s1', { text: 'go' })
  await fake.until('turn:end')
  const ids = fake.requests
    .at(-1)
    ?.messages.flatMap((message) => (message.role === 'tool' ? message.answers.map(({ callId }) => callId) : []))
  expect(new Set(ids).size).toBe(2)
})
