import { once } from 'node:events'
import { afterEach, expect, it } from 'vitest'
import type { StepEvent, StepRequest } from '../../models/port.ts'
import { type FakeChat, fakeChat, said } from './fake-chat.ts'

let fake: FakeChat
afterEach(() => fake.close())

const cost = { cost: 0.5, currency: 'EUR' }

it('sums tokens and cost per message and session, and knows how full the context is', async () => {
  const usage = { inputTokens: 100, cachedTokens: 60, outputTokens: 10, ...cost }
  fake = await fakeChat({ model: () => [{ ...said('ok'), usage } as StepEvent] })
  for (const [at, text] of ['one', 'two'].entries()) {
    await fake.chat.send('s1', { text })
    await fake.until('turn:end', ({ turnId }) => turnId === `t${at + 1}`)
  }
  const { entries, usage: sum, contextTokens } = await fake.chat.transcript('s1')
  const each = { inputTokens: 100, cachedTokens: 60, outputTokens: 10, ...cost }
  expect(entries.flatMap((entry) => (entry.kind === 'user' ? [entry.usage] : []))).toEqual([each, each])
  expect(sum).toEqual({ inputTokens: 200, cachedTokens: 120, outputTokens: 20, cost: 1, currency: 'EUR' })
  expect(contextTokens).toBe(110)
  await fake.chat.reset('s1')
  expect((await fake.chat.transcript('s1')).contextTokens).toBe(0)
})

it('counts the cost of an answer that is stopped, and says when a part has no price', async () => {
  const spoken = Promise.withResolvers<void>()
  async function* endless({ signal }: StepRequest): AsyncGenerator<StepEvent> {
    yield { type: 'text-delta', text: 'Once upon a time' }
    spoken.resolve()
    await once(signal, 'abort')
  }
  fake = await fakeChat({
    model: (request, step) => (step === 0 ? endless(request) : [said('ok')]),
    costOf: () => cost
  })
  await fake.chat.send('s1', { text: 'go' })
  await spoken.promise
  await fake.chat.cancel('s1')
  expect((await fake.chat.transcript('s1')).usage).toMatchObject(cost)
  await fake.chat.send('s1', { text: 'more' })
  await fake.until('turn:end', ({ turnId }) => turnId === 't2')
  expect((await fake.chat.transcript('s1')).usage).toMatchObject({ ...cost, isPartlyPriced: true })
})

it('sends no more history than the model can read', async () => {
  const long = 'word '.repeat(4000)
  const contextTokens = { 'demo/demo': 8000 }
  fake = await fakeChat({ model: () => [said(long)], contextTokens, options: { maxHistoryTokens: 100_000 } })
  for (const [at, text] of ['one', 'two', 'three'].entries()) {
    await fake.chat.send('s1', { text })
    await fake.until('turn:end', ({ turnId }) => turnId === `t${at + 1}`)
  }
  expect(JSON.stringify(fake.requests.at(-1)?.messages).length).toBeLessThan(8000 * 3.5)
  expect((await fake.log()).filter(({ data }) => data.code === 'history_trimmed')).toHaveLength(1)
})
