const DAY_MS = 86_400_000

export function duration(ms: number): string {
  if (ms < 999.5) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < 9950) return `${(ms / 1000).toFixed(1)} s`
  // Rounded before it is split: otherwise 59.6 seconds would be "60 s" instead of a minute.
  const seconds = Math.round(ms / 1000)
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
  const minutes = Math.floor(seconds / 60)
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** Remaining time, rounded for people. */
export function timeLeft(ms: number): string {
  if (ms < 60_000) return 'under a minute'
  const minutes = Math.round(ms / 60_000)
  return minutes < 60 ? `${minutes} min` : `${Math.round(ms / 3_600_000)} h`
}

export function bytes(count: number): string {
  if (count < 1000) return `${count} B`
  if (count < 999_500) return `${(count / 1000).toFixed(count < 9950 ? 1 : 0)} kB`
  return `${(count / 1_000_000).toFixed(1)} MB`
}

/** A limit that was set in megabytes of 1024 * 1024 bytes: 10 MB are "10 MB", not "10.5 MB". */
export function sizeLimit(limitBytes: number): string {
  return `${Math.floor(limitBytes / 1024 / 1024)} MB`
}

export function ago(at: number, now: number): string {
  const ms = now - at
  if (ms < 60_000) return 'just now'
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ago`
  if (ms < 86_400_000) return `${Math.floor(ms / 3_600_000)} h ago`
  return new Date(at).toLocaleDateString(undefined, { day: 'numeric', month: 'short' })
}

export function clock(at: number): string {
  return new Date(at).toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit' })
}

export function count(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString()} ${number === 1 ? one : many}`
}

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
