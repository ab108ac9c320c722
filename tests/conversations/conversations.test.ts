import { afterAll, beforeAll, expect, it } from 'vitest'
import { converse } from './converse.ts'
import { House } from './house.ts'

let house: House
beforeAll(async () => {
  house = await House.open()
})
afterAll(() => house.close())

/** Three for each vendor, and two that find planted bugs which the others miss; `npm run test:conversations` holds two hundred. */
const SEEDS = [...Array.from({ length: 12 }, (_, at) => at + 1), 14, 34]

it.each(SEEDS)('every request of conversation %i is valid, and the pages show the log', async (seed) => {
  const { violations, requests } = await converse(house, seed)
  expect(violations, `npm run test:conversations -- --seed ${seed}`).toEqual([])
  expect(requests).toBeGreaterThan(0)
})
