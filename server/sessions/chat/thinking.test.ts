import { once } from 'node:events'
import { afterEach, expect, it } from 'vitest'
import type { AssistantPart, StepEvent } from '../../models/port.ts'
import { type FakeChat, fakeChat, said } from './fake-chat.ts'

let fake: FakeChat
afterEach(() => fake.close())

const meta = { anthropic: { signature: 'c2ln' } }
const parts: AssistantPart[] = [
  { type: 'reasoning', text: 'First.', meta },
  { type: 'reasoning', text: '', meta: { anthropic: { redactedData: 'b3Bh' } } },
  { type: 'reasoning', text: 'Second.', meta },
  { type: 'text', text: 'Hello.' }
]
const answered = async () => (await fake.log()).filter(({ type }) => type === 'agent:response')

it('stores the thought apart from the answer, asks for the configured effort, and sends the parts back unchanged', async () => {
  const done: StepEvent = { type: 'done', parts, finish: 'stop', usage: { inputTokens: 1, outputTokens: 1 } }
  async function* thinking(): AsyncGenerator<StepEvent> {
    yield { type: 'reasoning-delta', text: 'First.' }
    yield { type: 'text-delta', text: 'Hello.' }
    yield done
  }
  fake = await fakeChat({ model: (_, step) => (step === 0 ? thinking() : [said('ok')]), options: { effort: 'high' } })
  await fake.chat.send('s1', { text: 'go' })
  await fake.until('turn:end')
  const [response] = await answered()
  expect(response?.data).toMatchObject({ text: 'Hello.', reasoning: 'First.\n\nSecond.' })
  expect(response?.data.reasoningMs).toBeGreaterThanOrEqual(0)
  const { entries } = await fake.chat.transcript('s1')
  expect(entries.find(({ kind }) => kind === 'agent')).toMatchObject({ text: 'Hello.', reasoning: 'First.\n\nSecond.' })
  await fake.chat.send('s1', { text: 'next' })
  await fake.until('turn:end', ({ turnId }) => turnId === 't2')
  expect(fake.requests.map(({ effort }) => effort)).toEqual(['high', 'high'])
  expect(fake.requests[1]?.messages[1]).toEqual({ role: 'assistant', parts })
})

it('retells thought and answer from their beginning, and keeps it when the turn is stopped', async () => {
  const thought = Promise.withResolvers<void>()
  async function* thinking({ signal }: { signal: AbortSignal }): AsyncGenerator<StepEvent> {
    for (const text of ['Let me ', 'see…']) yield { type: 'reasoning-delta', text }
    for (const text of ['Well, ', 'it is']) yield { type: 'text-delta', text }
    thought.resolve()
    await once(signal, 'abort')
  }
  const live: [string, object][] = []
  fake = await fakeChat({
    model: (request, step) => (step === 0 ? thinking(request) : [said('ok')]),
    live: (_, type, data) => live.push([type, data])
  })
  await fake.chat.send('s1', { text: 'go' })
  await thought.promise
  fake.chat.retell('s1')
  const pieces = live.flatMap(([type, data]) => (type === 'agent:reasoning' ? [data] : []))
  expect(pieces).toMatchObject([
    { turnId: 't1', text: 'Let me ', at: 0 },
    { turnId: 't1', text: 'see…', at: 7 },
    { turnId: 't1', text: 'Let me see…', at: 0 }
  ])
  expect(live.at(-1)).toEqual(['agent:text', { turnId: 't1', text: 'Well, it is' }])
  await fake.chat.cancel('s1')
  expect((await answered())[0]?.data).toMatchObject({
    text: 'Well, it is',
    reasoning: 'Let me see…',
    partial: 'stopped'
  })
  await fake.chat.send('s1', { text: 'next' })
  await fake.until('turn:end', ({ turnId }) => turnId === 't2')
  expect(JSON.stringify(fake.requests[1]?.messages)).not.toContain('Let me see')
})
