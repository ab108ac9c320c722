import { expect, it } from 'vitest'
import { dateGroup } from './date-groups.ts'

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
