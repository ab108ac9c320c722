import { once } from 'node:events'
import { afterEach, expect, it } from 'vitest'
import { lastAnswer } from '../../../contract/transcript.ts'
import type { ToolSource } from '../../calls/tool-source.ts'
import { AppError } from '../../lib/errors.ts'
import type { StepEvent, StepRequest } from '../../models/port.ts'
import { createPolicy } from '../../policy/approval-policy.ts'
import { called, type FakeChat, type FakeChatOptions, fakeChat, said } from './fake-chat.ts'

let fake: FakeChat
afterEach(() => fake.close())
const open = async (options: FakeChatOptions) => (fake = await fakeChat(options))

const allowAll = createPolicy([{ glob: '*/*', rule: 'allow' }])

function mail(): ToolSource & { sent: number } {
  const source = {
    server: 'mail',
    sent: 0,
    list: async () => [{ name: 'send', description: 'Sends a mail.', inputSchema: { type: 'object' } }],
    call: async () => {
      source.sent += 1
      return { content: [{ type: 'text', text: 'sent' }] }
    }
  }
  return source
}

async function* cut(text: string): AsyncGenerator<StepEvent> {
  yield { type: 'text-delta', text }
  throw new AppError('unavailable', 'model_stream_cut', 'It was cut.')
}

async function* hanging(text: string, { signal }: StepRequest): AsyncGenerator<StepEvent> {
  yield { type: 'text-delta', text }
  await once(signal, 'abort')
}

const ended = (turnId: string) => fake.until('turn:end', (data) => data.turnId === turnId)
const roles = (at: number) => fake.requests[at]?.messages.map(({ role }) => role)
const shown = async () =>
  (await fake.chat.transcript('s1')).entries.flatMap((entry) =>
    'text' in entry ? [`${entry.superseded ? 'earlier ' : ''}${entry.kind}: ${entry.text}`] : []
  )

it('retries a failed answer: the question and what was cut off do not stand in the history twice', async () => {
  const { chat, requests } = await open({ model: (_, step) => (step === 0 ? cut('half an ans') : [said('whole')]) })
  await chat.send('s1', { text: 'go' })
  await ended('t1')
  expect(lastAnswer(await chat.transcript('s1'))).toEqual({ turnId: 't1', action: 'retry' })
  expect(await chat.retry('s1', { turnId: 't1' })).toEqual({ turnId: 't2' })
  await ended('t2')
  expect(requests[1]?.messages).toEqual([{ role: 'user', text: 'go' }])
  expect(await shown()).toEqual(['user: go', 'earlier agent: half an ans', 'agent: whole'])
  const { entries } = await chat.transcript('s1')
  expect(entries.find(({ kind }) => kind === 'error')?.superseded).toBe(true)
  await chat.send('s1', { text: 'next' })
  await ended('t3')
  expect(JSON.stringify(requests[2]?.messages)).not.toContain('half')
})

it('regenerates only the text after the last calls, which do not run again', async () => {
  const source = mail()
  let answers = 0
  const model = ({ messages }: StepRequest) =>
    messages.at(-1)?.role === 'tool' ? [said(`answer ${++answers}`)] : [called('mail__send')]
  const { chat } = await open({ model, sources: [source], policy: allowAll })
  await chat.send('s1', { text: 'go' })
  await ended('t1')
  for (const turnId of ['t2', 't3']) {
    expect(lastAnswer(await chat.transcript('s1'))?.action).toBe('regenerate')
    await chat.retry('s1', {})
    await ended(turnId)
    expect(fake.requests.at(-1)?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool'])
  }
  expect(source.sent).toBe(1)
  expect(await shown()).toEqual(['user: go', 'earlier agent: answer 1', 'earlier agent: answer 2', 'agent: answer 3'])
})

it('retries a stopped turn from the results of the calls that ran', async () => {
  const source = mail()
  const model = (request: StepRequest, step: number) =>
    step === 0 ? [called('mail__send')] : step === 1 ? hanging('I have', request) : [said('done')]
  const { chat } = await open({ model, sources: [source], policy: allowAll })
  await chat.send('s1', { text: 'go' })
  await fake.until('tool:result')
  await expect.poll(() => fake.requests.length).toBe(2)
  await chat.cancel('s1')
  await chat.retry('s1', {})
  await ended('t2')
  expect(source.sent).toBe(1)
  expect(roles(2)).toEqual(['user', 'assistant', 'tool'])
})

it('asks the model again for calls that the stop has cancelled', async () => {
  const source = mail()
  const model = (_: StepRequest, step: number) => (step < 2 ? [called('mail__send', '{}', `c${step}`)] : [said('done')])
  const { chat } = await open({ model, sources: [source] })
  await chat.send('s1', { text: 'go' })
  await fake.until('tool:approval_required')
  await chat.cancel('s1')
  await chat.retry('s1', {})
  await fake.until('tool:approval_required', ({ callId }) => callId === 'c1')
  expect(roles(1)).toEqual(['user'])
  const { entries } = await chat.transcript('s1')
  expect(entries.filter(({ kind }) => kind === 'call').map(({ superseded }) => superseded)).toEqual([true, undefined])
  await chat.decide('s1', { callId: 'c1', approved: true })
  await ended('t2')
  expect(source.sent).toBe(1)
})

it('keeps a rejection in the history when a stopped turn is retried', async () => {
  const model = (request: StepRequest, step: number) =>
    step === 0 ? [called('mail__send')] : step === 1 ? hanging('', request) : [said('done')]
  const { chat } = await open({ model, sources: [mail()] })
  await chat.send('s1', { text: 'go' })
  await fake.until('tool:approval_required')
  await chat.decide('s1', { callId: 'call-mail__send', approved: false, reason: 'Not today.' })
  await expect.poll(() => fake.requests.length).toBe(2)
  await chat.cancel('s1')
  await chat.retry('s1', {})
  await ended('t2')
  expect(JSON.stringify(fake.requests[2]?.messages)).toContain('Not today.')
})

it('starts one attempt when two tabs retry at once, and none beside a message', async () => {
  const { chat, requests } = await open({ model: (_, step) => (step === 0 ? cut('x') : [said('ok')]) })
  await chat.send('s1', { text: 'go' })
  await ended('t1')
  const tries = await Promise.allSettled([
    chat.retry('s1', { turnId: 't1' }),
    chat.retry('s1', { turnId: 't1' }),
    chat.send('s1', { text: 'other' })
  ])
  expect(tries.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  await ended('t2')
  await expect(chat.retry('s1', { turnId: 't1' })).rejects.toMatchObject({ code: 'not_last_answer' })
  expect(requests).toHaveLength(2)
  // The number of the attempt is taken, so the next message gets the next one.
  expect(await chat.send('s1', { text: 'next' })).toEqual({ turnId: 't3' })
  await ended('t3')
})

it('refuses when there is nothing to retry or a turn is running', async () => {
  const { chat } = await open({ model: (request) => hanging('x', request) })
  await expect(chat.retry('s1', {})).rejects.toMatchObject({ code: 'nothing_to_retry' })
  await chat.send('s1', { text: 'go' })
  await expect(chat.retry('s1', {})).rejects.toMatchObject({ code: 'turn_in_progress' })
  await chat.cancel('s1')
  await chat.reset('s1')
  await expect(chat.retry('s1', {})).rejects.toMatchObject({ code: 'nothing_to_retry' })
})

it('goes on after a raised limit without a message of its own', async () => {
  const { chat, requests } = await open({ options: { limits: { maxSteps: 20, maxSessionTokens: 5 } } })
  await chat.send('s1', { text: 'one' })
  await ended('t1')
  await chat.send('s1', { text: 'two' })
  expect((await ended('t2')).data.reason).toBe('spending_limit')
  await chat.raiseLimit('s1')
  expect((await ended('t3')).data.reason).toBe('done')
  expect(requests[1]?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
})
