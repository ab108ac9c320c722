import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { PacedJob } from './paced-job.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

it('runs at once after a quiet time, and less and less often while requests keep coming', async () => {
  let done = 0
  const job = new PacedJob(async () => void done++, { firstMs: 1000, maxMs: 30_000 })
  const askFor = async (seconds: number) => {
    const before = done
    for (let tenths = 0; tenths < 10 * seconds; tenths++) {
      job.ask()
      await vi.advanceTimersByTimeAsync(100)
    }
    return done - before
  }
  expect(await askFor(0.5)).toBe(1)
  expect(await askFor(59)).toBeLessThan(7)
  expect(await askFor(300)).toBeLessThan(11)
  // The requested work is done, and nothing after it.
  await vi.advanceTimersByTimeAsync(100_000)
  const before = done
  await vi.advanceTimersByTimeAsync(100_000)
  expect(done).toBe(before)
  expect(await askFor(0.5)).toBe(1)
})

it('never runs twice at a time, and runs once more for requests that came meanwhile', async () => {
  const ends: (() => void)[] = []
  const job = new PacedJob(() => new Promise<void>((end) => ends.push(end)), { firstMs: 10, maxMs: 100 })
  job.ask()
  await vi.advanceTimersByTimeAsync(0)
  job.ask()
  job.ask()
  await vi.advanceTimersByTimeAsync(1000)
  expect(ends).toHaveLength(1)
  ends[0]?.()
  await vi.advanceTimersByTimeAsync(1000)
  expect(ends).toHaveLength(2)
})
