import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { ApprovalCard } from '../../contract/rest.ts'
import { api } from '../api.ts'
import { useInbox } from './inbox.ts'

const card: ApprovalCard = {
  ...{ id: 'one', hash: 'h', server: 's', tool: 't', args: {}, asker: { door: 'stdio' } },
  ...{ createdAt: 0, expiresAt: 1 }
}
let isAway = false

beforeEach(() => {
  vi.useFakeTimers()
  setActivePinia(createPinia())
  isAway = false
  vi.spyOn(api, 'approvals').mockImplementation(async () => {
    if (isAway) throw new Error('away')
    return { approvals: [{ ...card }], now: Date.now() }
  })
})
afterEach(() => vi.useRealTimers())

it('keeps a card that is being read through a lost request or two, and says when the server is away', async () => {
  const inbox = useInbox()
  const polls = (times: number) => vi.advanceTimersByTimeAsync(2000 * times)
  inbox.watchCards()
  await polls(1)
  isAway = true
  await polls(2)
  expect([inbox.cards, inbox.isAway]).toEqual([[card], false])
  await polls(1)
  expect([inbox.cards, inbox.isAway]).toEqual([[], true])
  isAway = false
  await polls(1)
  expect([inbox.cards, inbox.isAway]).toEqual([[card], false])
  isAway = true
  await polls(2)
  expect(inbox.cards).toEqual([card])
})

it('offers no card again that was answered, though the list can’t be read just then', async () => {
  const inbox = useInbox()
  inbox.watchCards()
  await vi.advanceTimersByTimeAsync(1)
  isAway = true
  vi.spyOn(api, 'answerApproval').mockResolvedValue(new Response(null, { status: 204 }))
  await inbox.answer(card, { approved: true })
  expect([inbox.cards, inbox.deciding.size]).toEqual([[], 0])
})
