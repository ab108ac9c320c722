export interface RunTimes {
  /** How long a caller waits for a run before it is told to poll. */
  answerMs: number
  /** How long the realm is kept while the program waits only for a person. */
  lingerMs: number
  pollMs: number
  /** A run that waits is given up if nobody decides within this time after its last question. */
  expireMs: number
  /** How long an ended run can be read. */
  keepMs: number
  leaseMs: number
  /** How soon a run that could not continue is tried again; longer if that happens again. */
  retryMs: number
  /** How often this process looks for runs that it can continue. */
  watchMs: number
}

const DAY_MS = 86_400_000
/** A run that was decided about in time is continued this much later, in case no process could do it before. */
export const LATE_MS = 7 * DAY_MS
export const DEFAULT_TIMES: RunTimes = {
  answerMs: 45_000,
  lingerMs: 10_000,
  pollMs: 500,
  expireMs: DAY_MS,
  keepMs: DAY_MS,
  leaseMs: 15_000,
  retryMs: 10_000,
  watchMs: 2000
}
