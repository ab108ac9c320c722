import { expect, it } from 'vitest'
import { fakeKeyValueStore } from '../storage/fake-key-value-store.ts'
import { ApprovalInbox } from './approval-inbox.ts'
import { fillInbox } from './fill-inbox.fixture.ts'
import { leavePlace, renewPlace, takePlace } from './waiting-places.ts'

it('never holds more than 100 cards, however many callers ask at once', () => {
  const keyValues = fakeKeyValueStore()
  return fillInbox([new ApprovalInbox(keyValues), new ApprovalInbox(keyValues)])
})

it('gives a place that was not renewed to the next caller, and the old holder cannot free it', async () => {
  const keyValues = fakeKeyValueStore()
  const later = Date.now() + 600_000
  const dead = await takePlace(keyValues, { holder: 'dead', until: 1, limit: 1 })
  const live = await takePlace(keyValues, { holder: 'live', until: later, limit: 1 })
  if (!dead || !live) throw new Error('no place')
  expect(await renewPlace(keyValues, dead, { holder: 'dead', until: later })).toBeUndefined()
  await leavePlace(keyValues, dead)
  expect(await takePlace(keyValues, { holder: 'third', until: later, limit: 1 })).toBeUndefined()
  await leavePlace(keyValues, live)
  expect(await takePlace(keyValues, { holder: 'third', until: later, limit: 1 })).toBeDefined()
})
