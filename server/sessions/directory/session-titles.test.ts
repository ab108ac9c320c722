import { afterEach, expect, it } from 'vitest'
import { silentLogger } from '../../lib/logger.ts'
import type { StepEvent, StepRequest } from '../../models/port.ts'
import { SessionAccess } from '../access/session-access.ts'
import { type FakeChat, fakeChat, said } from '../chat/fake-chat.ts'
import { SessionFeed } from '../feed/session-feed.ts'
import { cleanTitle, nameSessions } from './session-titles.ts'

let fake: FakeChat
afterEach(() => fake.close())

async function named(
  reply: (request: StepRequest) => StepEvent[] | AsyncIterable<StepEvent>,
  model = 'anthropic/large'
) {
  fake = await fakeChat()
  const { store, chat } = fake
  const access = new SessionAccess(store.keyValues, { MAX_OWNER_SESSIONS: 100, MAX_ADDRESS_SESSIONS: 1000 })
  const feed = new SessionFeed()
  const requests: StepRequest[] = []
  let ended = 0
  async function* step(request: StepRequest) {
    requests.push(request)
    yield* reply(request)
  }
  nameSessions({
    ...{ access, feed, models: { step }, log: { events: store.events, publish: feed.stored }, logger: silentLogger },
    transcript: (sessionId) => chat.transcript(sessionId),
    checkQuota: async () => void ended++
  })
  await access.open('s', { owner: 'me' })
  await chat.begin('s', model)
  await access.rename('s', 'hello there, can you', 'words')
  const title = async () => (await access.meta('s'))?.title
  const turn = async (turnId: string, reason = 'done') => {
    const events = await store.events.append('s', [
      { type: 'user:message', data: { turnId, text: 'hello there, can you </b>' } },
      { type: 'agent:response', data: { turnId, text: `An answer.${'x'.repeat(5000)}` } },
      { type: 'turn:end', data: { turnId, reason } }
    ])
    feed.stored('s', events)
  }
  const usages = async () => (await store.events.read('s')).filter(({ type }) => type === 'usage')
  return { access, requests, title, turn, usages, asked: () => ended }
}

it('names a session once, after its first answer, with one short request whose tokens are counted', async () => {
  const { requests, title, turn, usages, asked } = await named(() => [said('"A \u202ecomputed\u200b title."\nmore')])
  await turn('t1', 'error')
  await turn('t2')
  await expect.poll(title).toBe('A computed title')
  await turn('t3')
  await expect.poll(asked).toBe(2)
  expect(requests).toHaveLength(1)
  expect(requests[0]).toMatchObject({ model: 'anthropic/large', tools: [], effort: 'off', maxOutputTokens: 200 })
  expect(JSON.stringify(requests[0]?.messages).length).toBeLessThan(3500)
  expect((await usages()).map(({ data }) => data)).toEqual([
    { turnId: 't2', of: 'title', inputTokens: 10, outputTokens: 1 }
  ])
})

it('leaves the fill of the context as the conversation has filled it', async () => {
  const { turn, title, usages } = await named(() => [said('A title')])
  await fake.store.events.append('s', [{ type: 'usage', data: { turnId: 't1', inputTokens: 85_000, outputTokens: 5 } }])
  await turn('t1')
  await expect.poll(title).toBe('A title')
  await expect.poll(usages).toHaveLength(2)
  const { contextTokens, usage } = await fake.chat.transcript('s')
  expect(contextTokens).toBe(85_005)
  expect(usage).toMatchObject({ inputTokens: 85_010, outputTokens: 6 })
})

it('never replaces a title that the person wrote, also while the model answers', async () => {
  const before = await named(() => [said('By the model')])
  await before.access.rename('s', 'Mine')
  await before.turn('t1')
  await expect.poll(before.asked).toBe(1)
  expect(before.requests).toEqual([])
  await fake.close()
  const late = await named(async function* () {
    await late.access.rename('s', 'Mine')
    yield said('By the model')
  })
  await late.turn('t1')
  await expect.poll(late.usages).toHaveLength(1)
  await late.turn('t2')
  await expect.poll(late.asked).toBe(2)
  expect(await late.title()).toBe('Mine')
})

it('keeps the first words with the demo model, and if the model fails or says nothing', async () => {
  const demo = await named(() => [said('x')], 'demo/demo')
  await demo.turn('t1')
  expect(await demo.title()).toBe('hello there, can you')
  expect(demo.requests).toEqual([])
  await fake.close()
  const failing = await named(() => {
    throw new Error('no')
  })
  await failing.turn('t1')
  await failing.turn('t2')
  await expect.poll(failing.asked).toBe(2)
  expect(failing.requests).toHaveLength(1)
  expect(await failing.title()).toBe('hello there, can you')
  await fake.close()
  const silent = await named(() => [said('\u200b **""** ')])
  await silent.turn('t1')
  await expect.poll(silent.usages).toHaveLength(1)
  expect(await silent.title()).toBe('hello there, can you')
})

it('takes quotes, Markdown and what is too long from a title', () => {
  expect(cleanTitle('# **Title: Rome & Café**')).toBe('Rome & Café')
  expect(cleanTitle(`${'ab '.repeat(50)}`)).toHaveLength(59)
  expect(cleanTitle('👩‍👩‍👧 Familie\tund  Katze')).toBe('👩‍👩‍👧 Familie und Katze')
  expect(cleanTitle('“Quoted”')).toBe('Quoted')
})
