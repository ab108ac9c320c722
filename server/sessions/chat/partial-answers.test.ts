import { once } from 'node:events'
import { afterEach, expect, it } from 'vitest'
import { AppError } from '../../lib/errors.ts'
import type { StepEvent, StepRequest } from '../../models/port.ts'
import { endOf } from '../turns/turn-events.ts'
import { called, type FakeChat, fakeChat, said } from './fake-chat.ts'

let fake: FakeChat
afterEach(() => fake.close())

/** Streams these deltas, then does what `then` does. Later steps answer at once. */
async function speaking(deltas: string[], then: (request: StepRequest) => Promise<void>) {
  const spoken = Promise.withResolvers<void>()
  async function* first(request: StepRequest): AsyncGenerator<StepEvent> {
    for (const text of deltas) yield { type: 'text-delta', text }
    spoken.resolve()
    await then(request)
  }
  fake = await fakeChat({ model: (request, step) => (step === 0 ? first(request) : [said('ok')]) })
  await fake.chat.send('s1', { text: 'go' })
  await spoken.promise
  return fake
}

const forEver = ({ signal }: StepRequest) => once(signal, 'abort').then(() => {})
const told = async () =>
  (await fake.log()).filter(({ type }) => ['agent:response', 'usage', 'agent:error', 'turn:end'].includes(type))

it('stores what was streamed when a person stops the turn, counts its tokens and tells the model', async () => {
  const { chat, requests, until } = await speaking(['Hello', ' wor'], forEver)
  await chat.cancel('s1')
  const [response, usage, end] = await told()
  expect(response).toMatchObject({ type: 'agent:response', data: { text: 'Hello wor', partial: 'stopped' } })
  expect(usage?.data.inputTokens).toBeGreaterThan(10)
  expect(usage?.data.outputTokens).toBeGreaterThan(0)
  expect(end).toMatchObject({ type: 'turn:end', data: { reason: 'cancelled' } })
  await chat.send('s1', { text: 'next' })
  await until('turn:end', ({ turnId }) => turnId === 't2')
  expect(JSON.stringify(requests[1]?.messages)).toContain('Hello wor')
  expect((await told()).filter(({ data }) => data.partial)).toHaveLength(1)
})

it('counts the tokens of a step that was stopped before it said anything', async () => {
  const { chat } = await speaking([], forEver)
  await chat.cancel('s1')
  expect((await told()).map(({ type }) => type)).toEqual(['usage', 'turn:end'])
})

it('stores what was streamed when the stream is cut, with the error, and without half a character', async () => {
  const { until } = await speaking(['so ', '\ud83e'], async () => {
    throw new AppError('unavailable', 'model_stream_cut', 'It was cut.')
  })
  await until('turn:end')
  expect((await told()).map(({ type, data }) => [type, data.text ?? data.code ?? data.reason])).toEqual([
    ['agent:response', 'so '],
    ['usage', undefined],
    ['agent:error', 'model_stream_cut'],
    ['turn:end', 'error']
  ])
})

it('stores what was streamed when the server stops, and leaves the turn open', async () => {
  const { chat } = await speaking(['almost'], forEver)
  await chat.stop()
  expect((await told()).map(({ type, data }) => [type, data.partial])).toEqual([
    ['agent:response', 'server'],
    ['usage', undefined]
  ])
})

it('stores nothing for a request that failed at once', async () => {
  const { until } = await speaking([], async () => {
    throw new AppError('unavailable', 'model_unreachable', 'Nobody answers.')
  })
  await until('turn:end')
  expect((await told()).map(({ type }) => type)).toEqual(['agent:error', 'turn:end'])
})

/** Another instance ends the turn at the moment when this one stores the whole answer. */
async function stoppedElsewhere(answer: StepEvent[]) {
  fake = await fakeChat({
    model: (_, step) => (step === 0 ? [{ type: 'text-delta', text: 'All of it.' }, ...answer] : [said('ok')]),
    events: (log) => ({
      ...log,
      async append(sessionId, events, options) {
        const isAnswer = events.some(({ type, data }) => type === 'agent:response' && data.turnId === 't1')
        if (isAnswer) await log.append(sessionId, [endOf('t1', 'cancelled')]).catch(() => {})
        return log.append(sessionId, events, options)
      }
    })
  })
  await fake.chat.send('s1', { text: 'go' })
  await fake.until('agent:response')
  await fake.chat.send('s1', { text: 'next' })
  await fake.until('turn:end', ({ turnId }) => turnId === 't2')
  return fake.requests[1]?.messages
}

it('keeps a whole answer that was stopped elsewhere while it was being stored', async () => {
  const messages = await stoppedElsewhere([said('All of it.')])
  expect(messages?.map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
  expect((await told()).filter(({ type }) => type === 'agent:response')).toMatchObject([
    { data: { text: 'All of it.', partial: 'stopped' } },
    { data: { text: 'ok' } }
  ])
})

it('keeps a step that was stopped elsewhere while its calls were being stored, and tells the model that they did not run', async () => {
  const messages = await stoppedElsewhere([called('mail__send')])
  expect(messages?.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user'])
})

// Checked: if the signal stays aborted, the driver tries the next step for ever and blocks the whole server.
it('answers the next message after another instance has ended the turn', async () => {
  const { chat, store, until } = await speaking(['Hello'], forEver)
  await store.events.append('s1', [endOf('t1', 'cancelled')])
  await until('agent:response', ({ partial }) => partial === 'stopped')
  await chat.send('s1', { text: 'next' })
  await until('turn:end', ({ turnId }) => turnId === 't2')
  expect((await told()).at(-1)).toMatchObject({ type: 'turn:end', data: { reason: 'done' } })
})
