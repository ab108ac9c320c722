import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { testRedisUrl } from '../../tests/support/test-redis.ts'
import { silentLogger } from '../lib/logger.ts'
import { openRedisStore } from '../storage/redis/open-redis-store.ts'
import type { Store } from '../storage/store.ts'
import { ApprovalInbox } from './approval-inbox.ts'
import { fillInbox } from './fill-inbox.fixture.ts'

const card = { hash: 'h', server: 's', tool: 't', args: { a: 1 }, asker: { door: 'stdio' } }
let stores: Store[]
let asker: ApprovalInbox
let page: ApprovalInbox
beforeEach(async () => {
  const url = await testRedisUrl()
  const keyPrefix = `test:${randomUUID()}:`
  const open = () => openRedisStore({ url, logger: silentLogger, keyPrefix })
  stores = await Promise.all([open(), open()])
  const [one, two] = stores
  if (!one || !two) throw new Error('no store')
  asker = new ApprovalInbox(one.keyValues)
  page = new ApprovalInbox(two.keyValues)
})
afterEach(async () => {
  await Promise.all(stores.map((store) => store.close()))
})

describe('the approval inbox shared by two processes over Redis', () => {
  it('knows whether a page is open, delivers a card and returns the first answer', async () => {
    expect(await asker.isAttended()).toBe(false)
    page.attend()
    await expect.poll(() => asker.isAttended()).toBe(true)
    const answered = asker.ask(card, 20_000, new AbortController().signal)
    await expect.poll(async () => (await page.open()).length).toBe(1)
    const [shown] = await page.open()
    expect(shown).toMatchObject(card)
    const answers = Array.from({ length: 8 }, (_, at) => page.answer(shown?.id ?? '', 'h', { approved: at % 2 === 0 }))
    const settled = await Promise.allSettled(answers)
    const winner = settled.findIndex(({ status }) => status === 'fulfilled')
    expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(await answered).toEqual({ approved: winner % 2 === 0 })
    expect(await page.open()).toEqual([])
    await page.leave()
    expect(await asker.isAttended()).toBe(false)
  })

  it('withdraws the card of a cancelled call', async () => {
    const controller = new AbortController()
    const asked = asker.ask(card, 20_000, controller.signal)
    await expect.poll(async () => (await page.open()).length).toBe(1)
    const [shown] = await page.open()
    controller.abort()
    await expect(asked).rejects.toMatchObject({ kind: 'cancelled', code: 'cancelled' })
    expect(await page.open()).toEqual([])
    await expect(page.answer(shown?.id ?? '', 'h', { approved: true })).rejects.toMatchObject({ code: 'approval_gone' })
  })

  it('never holds more than 100 cards, however many callers ask at once, and has room again when they leave', () =>
    fillInbox([asker, page]))
})
