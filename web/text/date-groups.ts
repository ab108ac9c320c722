const DAY_MS = 86_400_000

/** The heading under which a list shows something from this time: by day, then by month. */
export function dateGroup(at: number, now: number): string {
  const today = new Date(now).setHours(0, 0, 0, 0)
  // Noon of the day before, because a day of a clock change has 23 or 25 hours.
  const yesterday = new Date(today - DAY_MS / 2).setHours(0, 0, 0, 0)
  if (at >= today) return 'Today'
  if (at >= yesterday) return 'Yesterday'
  if (at >= new Date(today - 6.5 * DAY_MS).setHours(0, 0, 0, 0)) return 'Previous 7 days'
  return new Date(at).toLocaleDateString(undefined, { month: 'long', year: 'numeric' })
}
