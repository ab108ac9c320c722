import type { Progress } from '@modelcontextprotocol/client'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { textOf } from '../../../tests/support/text-of.ts'
import { child, openTestConnections } from '../connections.fixture.ts'
import { CalmProgress } from './calm-progress.ts'

describe('progress of a call', () => {
  let told: Progress[]
  let calm: CalmProgress

  beforeEach(() => {
    vi.useFakeTimers()
    told = []
    calm = new CalmProgress((progress) => void told.push(progress))
  })
  afterEach(() => {
    calm.stop()
    vi.useRealTimers()
  })

  it('is passed on at once and in full at a normal rate', () => {
    for (let second = 0; second < 3; second++) {
      for (let step = 0; step < 20; step++) calm.push({ progress: second * 20 + step, total: 60, message: 'm' })
      vi.advanceTimersByTime(1000)
    }
    expect(told.map(({ progress }) => progress)).toEqual(Array.from({ length: 60 }, (_, at) => at))
    expect(told[0]).toEqual({ progress: 0, total: 60, message: 'm' })
  })

  // Checked: if every report is passed on, 100,000 arrive at full length.
  it('is limited to a few shortened reports per second in a flood, always with the newest', () => {
    for (let ms = 0; ms < 10_000; ms++) {
      for (let step = 0; step < 10; step++) calm.push({ progress: ms * 10 + step, message: 'x'.repeat(10_000) })
      vi.advanceTimersByTime(1)
    }
    calm.flush()
    expect(told.length).toBeLessThan(250)
    expect(told.at(-1)?.progress).toBe(99_999)
    expect(told.every(({ message }) => message?.length === 2000)).toBe(true)
  })

  it('comes before the answer, and not after the call was cancelled', () => {
    for (let step = 0; step < 30; step++) calm.push({ progress: step })
    expect(told.at(-1)?.progress).toBe(19)
    calm.flush()
    expect(told.at(-1)?.progress).toBe(29)
    for (let step = 0; step < 50; step++) calm.push({ progress: 100 + step })
    calm.stop()
    vi.advanceTimersByTime(5000)
    expect(told.at(-1)?.progress).toBe(118)
  })
})

it('limits the progress of a flooding server, and completes it before the answer', async () => {
  const { call, close } = await openTestConnections({ a: child('noise') })
  try {
    const told: Progress[] = []
    const { result } = await call('a', 'chatter', {}, { onProgress: (progress) => void told.push(progress) })
    expect(textOf(result)).toBe('done')
    expect(told.length).toBeLessThan(1000)
    expect(told.at(-1)?.progress).toBe(10_000)
  } finally {
    await close()
  }
})
