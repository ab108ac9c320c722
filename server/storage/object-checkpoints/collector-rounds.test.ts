import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { silentLogger } from '../../lib/logger.ts'
import { CollectorRounds } from './collector-rounds.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

it('comes back soon if a round left something, and otherwise after hours', async () => {
  let isMore = true
  const round = vi.fn(async () => ({ isMore }))
  const rounds = new CollectorRounds({ round }, silentLogger)
  rounds.start(1)
  await vi.advanceTimersByTimeAsync(15 * 60_000)
  expect(round).toHaveBeenCalledTimes(2)
  isMore = false
  await vi.advanceTimersByTimeAsync(3_600_000)
  expect(round).toHaveBeenCalledTimes(3)
  await vi.advanceTimersByTimeAsync(6 * 3_600_000)
  expect(round).toHaveBeenCalledTimes(4)
  rounds.stop()
})
