export interface RunTimes {
  /** How long a caller waits for a run before it is told to poll. */
  answerMs: number
  /** How long the realm is kept while only a person is waited for. */
  lingerMs: number
  pollMs: number
  /** When a run is given up that nobody decides about or asks for. */
  expireMs: number
  /** How long an ended run can be read. */
  keepMs: number
  leaseMs: number
  /** How often this process looks whether one of its waiting runs was decided. */
  watchMs: number
}

export const DAY_MS = 86_400_000
export const DEFAULT_TIMES: RunTimes = {
  answerMs: 45_000,
  lingerMs: 10_000,
  pollMs: 500,
  expireMs: DAY_MS,
  keepMs: DAY_MS,
  leaseMs: 15_000,
  watchMs: 2000
}
