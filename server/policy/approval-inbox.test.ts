import { expect, it } from 'vitest'
import { fakeKeyValueStore } from '../storage/fake-key-value-store.ts'
import { ApprovalInbox } from './approval-inbox.ts'
import { fillInbox } from './fill-inbox.fixture.ts'
import { leavePlace, renewPlace, takePlace } from './waiting-places.ts'

const CARD = { hash: 'h', server: 's', tool: 't', args: { a: 1 }, asker: { door: 'stdio' } }

it('never holds more than 100 cards, however many callers ask at once', () => {
  const keyValues = fakeKeyValueStore()
  return fillInbox([new ApprovalInbox(keyValues), new ApprovalInbox(keyValues)])
})

// Checked: with one limit for all alone, the program takes 100 places, and the other owner gets `approvals_full` for a day.
it('leaves places for others: a program and an owner get a share, however many calls they make at once', async () => {
  const keyValues = fakeKeyValueStore()
  const inboxes = [new ApprovalInbox(keyValues), new ApprovalInbox(keyValues)]
  const expiresAt = Date.now() + 86_400_000
  const post = (owner: string, runId: string, n: number) => {
    const code = { runId, n, line: 1, source: '', sources: [] }
    const card = { ...CARD, owner, id: `${runId}.${n}`, code, createdAt: Date.now(), expiresAt }
    return inboxes[n % 2]?.post(card).then(
      () => 'given',
      ({ code, message }) => `${code}: ${message}`
    )
  }
  const burst = (owner: string, runId: string) =>
    Promise.all(Array.from({ length: 100 }, (_, n) => post(owner, runId, n)))
  const given = (answers: unknown[]) => answers.filter((answer) => answer === 'given').length
  const first = await burst('greedy', 'a')
  expect(given(first)).toBeLessThanOrEqual(20)
  expect(given(first)).toBeGreaterThan(10)
  expect(first.find((answer) => answer !== 'given')).toMatch(/^approvals_full: .*of this program/)
  for (const run of ['b', 'c', 'd', 'e', 'f']) await burst('greedy', run)
  expect((await inboxes[0]?.open())?.length).toBeLessThanOrEqual(50)
  expect(await post('greedy', 'g', 1)).toMatch(/^approvals_full: .*of your own calls/)
  expect(await post('other', 'h', 1)).toBe('given')
  // However many owners somebody makes up, each gets less.
  for (const owner of ['x', 'y', 'z']) await burst(owner, owner)
  expect(await post('last', 'i', 1)).toBe('given')
  expect(JSON.stringify(await inboxes[0]?.open())).not.toContain('greedy')
})

it('gives a place that was not renewed to the next caller, and the old holder cannot free it', async () => {
  const keyValues = fakeKeyValueStore()
  const later = Date.now() + 600_000
  const place = { owner: 'o', run: '', limit: 1 }
  const dead = await takePlace(keyValues, { ...place, holder: 'dead', until: 1 })
  const live = await takePlace(keyValues, { ...place, holder: 'live', until: later })
  if (typeof dead === 'string' || typeof live === 'string') throw new Error('no place')
  expect(await renewPlace(keyValues, dead, later)).toBeUndefined()
  await leavePlace(keyValues, dead)
  expect(await takePlace(keyValues, { ...place, owner: 'p', holder: 'third', until: later })).toBe('all')
  await leavePlace(keyValues, live)
  expect(await takePlace(keyValues, { ...place, holder: 'third', until: later })).toMatchObject({ key: '0' })
})
