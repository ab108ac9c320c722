import { expect, it } from 'vitest'
import { RateLimit } from './rate-limit.ts'

it('lets up to the limit through in a window, for each key alone, and says when to come back', () => {
  const limit = new RateLimit(2, 1000)
  expect([limit.tryTake('a', 0), limit.tryTake('a', 1), limit.tryTake('b', 2)]).toEqual([0, 0, 0])
  expect([limit.tryTake('a', 3), limit.tryTake('a', 999), limit.tryTake('b', 999)]).toEqual([997, 1, 0])
  expect([limit.tryTake('a', 1000), limit.tryTake('b', 1000)]).toEqual([0, 2])
})

it('does not count what was refused or given back', () => {
  const limit = new RateLimit(1, 1000)
  limit.tryTake('a', 0)
  for (let at = 1; at < 1000; at++) expect(limit.tryTake('a', at)).toBeGreaterThan(0)
  expect([limit.tryTake('a', 1000), limit.tryTake('a', 1001)]).toEqual([0, 999])
  limit.giveBack('a')
  expect(limit.tryTake('a', 1002)).toBe(0)
})

it('tells a person when to come back', () => {
  const limit = new RateLimit(1, 60_000)
  limit.enter('a', 'messages')
  expect(() => limit.enter('a', 'messages')).toThrow(/^Too many messages in a short time: try again in \d+ seconds\.$/)
})

// Without the bound, all 120 keys are still known.
it('keeps a bounded number of keys, however many are made up', () => {
  const limit = new RateLimit(1, 60_000)
  for (let at = 0; at < 120_000; at++) limit.tryTake(`key ${at}`, 0)
  let known = 0
  for (let at = 0; at < 120_000; at += 1000) if (limit.tryTake(`key ${at}`, 1) > 0) known += 1
  expect(known).toBeLessThan(101)
})
