import fc from 'fast-check'
import { expect, it } from 'vitest'
import { backoffMs } from './backoff.ts'

it('doubles up to its maximum, and never waits longer or less than nothing', () => {
  const steps = [1, 2, 3, 4, 5].map((attempt) => backoffMs(attempt, { firstMs: 100, maxMs: 1000, jitter: 0 }))
  expect(steps).toEqual([100, 200, 400, 800, 1000])
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 100_000 }), fc.double({ min: 0, max: 1, noNaN: true }), (attempt, jitter) => {
      const ms = backoffMs(attempt, { firstMs: 20, maxMs: 500, jitter })
      expect(ms).toBeGreaterThanOrEqual(0)
      expect(ms).toBeLessThanOrEqual(500)
    })
  )
})
