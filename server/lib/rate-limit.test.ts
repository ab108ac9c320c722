import { expect, it } from 'vitest'
import { RateLimit } from './rate-limit.ts'

it('lets so many through in a window, for each key alone', () => {
  const limit = new RateLimit(2, 1000)
  expect([limit.take('a', 0), limit.take('a', 1), limit.take('a', 2), limit.take('b', 3)]).toEqual([
    true,
    true,
    false,
    true
  ])
  expect(limit.take('a', 999)).toBe(false)
  expect(limit.take('a', 1000)).toBe(true)
})
