import { expect, it } from 'vitest'
import { bytes, dateGroup, duration, sizeLimit, timeLeft } from './format.ts'

it.each([
  [-5, '0 ms'],
  [999.4, '999 ms'],
  [999.6, '1.0 s'],
  [9940, '9.9 s'],
  [9960, '10 s'],
  [59_499, '59 s'],
  [59_500, '1 min 0 s'],
  [60_000, '1 min 0 s'],
  [599_499, '9 min 59 s'],
  [599_999, '10 min 0 s'],
  [3_599_400, '59 min 59 s'],
  [3_599_900, '1 h 0 min'],
  [7_199_900, '2 h 0 min']
])('%d ms last "%s": no unit is ever full', (ms, words) => {
  expect(duration(ms)).toBe(words)
})

it.each([
  [59_999, 'under a minute'],
  [3_569_000, '59 min'],
  [3_599_000, '1 h'],
  [7_000_000, '2 h']
])('of %d ms, "%s" are left', (ms, words) => {
  expect(timeLeft(ms)).toBe(words)
})

it.each([
  [999, '999 B'],
  [9960, '10 kB'],
  [999_600, '1.0 MB'],
  [1_500_000, '1.5 MB']
])('%d bytes are "%s"', (count, words) => {
  expect(bytes(count)).toBe(words)
})

it('groups times by day, week and month, also around a change of the clock', () => {
  const now = new Date(2026, 10, 16, 9, 30).getTime()
  const on = (month: number, day: number, hour: number, minute = 0) =>
    dateGroup(new Date(2026, month, day, hour, minute).getTime(), now)
  expect(on(10, 16, 0)).toBe('Today')
  expect(on(10, 16, 23)).toBe('Today')
  expect(on(10, 15, 23, 59)).toBe('Yesterday')
  expect(on(10, 15, 0)).toBe('Yesterday')
  expect(on(10, 14, 23, 59)).toBe('Previous 7 days')
  expect(on(10, 9, 0)).toBe('Previous 7 days')
  expect(on(10, 8, 23, 59)).toMatch(/November.*2026|2026/)
  expect(on(9, 1, 12)).toMatch(/October.*2026/)
  for (let hour = 0; hour < 24 * 400; hour += 5) {
    const day = new Date(2026, 0, 1, hour)
    const midnight = new Date(2026, 0, 1, hour).setHours(0, 0, 0, 0)
    expect(dateGroup(midnight, day.getTime())).toBe('Today')
    expect(dateGroup(midnight - 1, day.getTime())).toBe('Yesterday')
  }
})

it('names a limit as it was set', () => {
  expect(sizeLimit(10 * 1024 * 1024)).toBe('10 MB')
})
