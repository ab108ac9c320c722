import { afterEach, expect, it } from 'vitest'
import { type FakeChat, type FakeChatOptions, fakeChat } from './fake-chat.ts'

let fake: FakeChat
afterEach(() => fake.close())

const open = async (options: FakeChatOptions['options'] = {}) => {
  fake = await fakeChat({ options })
  return fake.chat
}

it('starts a session in the mode of the setting, and an older one in ask', async () => {
  const chat = await open({ mode: 'review' })
  expect((await chat.transcript('s1')).mode).toBe('review')
  expect((await chat.transcript('older')).mode).toBe('ask')
})

it('records a change of the mode once', async () => {
  const chat = await open()
  await chat.selectMode('s1', { mode: 'preview' })
  await chat.selectMode('s1', { mode: 'preview' })
  expect((await fake.log()).filter(({ type }) => type === 'mode:selected')).toHaveLength(1)
  const { mode, entries } = await chat.transcript('s1')
  expect({ mode, entries }).toMatchObject({ mode: 'preview', entries: [{ message: 'Approval mode: Preview.' }] })
})

it('refuses to run ahead where sandboxes have a network', async () => {
  const chat = await open({ network: 'bridge' })
  await expect(chat.selectMode('s1', { mode: 'review' })).rejects.toMatchObject({ code: 'mode_unavailable' })
  expect((await chat.transcript('s1')).mode).toBe('ask')
})

it('decides a review once, only as it was shown, and lets nobody switch the mode before', async () => {
  const chat = await open({ mode: 'review' })
  const changes = { changeId: 'review:r1', hash: 'h1', total: 1, files: [{ path: 'a' }] }
  await fake.store.events.append('s1', [{ type: 'review:opened', data: { reviewId: 'r1', turnId: 't1', changes } }])
  await expect(chat.selectMode('s1', { mode: 'ask' })).rejects.toMatchObject({ code: 'review_open' })
  const answer = { reviewId: 'r1', hash: 'h1', accept: 'all' as const }
  await expect(chat.decideReview('s1', { ...answer, hash: 'h0' })).rejects.toMatchObject({ code: 'stale' })
  const decided = await Promise.allSettled([chat.decideReview('s1', answer), chat.decideReview('s1', answer)])
  expect(decided.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
  expect((await fake.log()).filter(({ type }) => type === 'review:resolved')).toHaveLength(1)
})
