import type { ServerEntry } from '../catalog/server-entry.ts'
import { AppError } from '../lib/errors.ts'
import { type DeadlineOptions, withDeadline } from '../lib/waiting/deadline.ts'
import type { StartGate } from '../lib/waiting/start-gate.ts'

/** With less than this share of the time left, another try would only hide the reason of the first. */
const MIN_SHARE = 0.1
/** For stopping a child that did not answer, so that the reason is not lost to the deadline. */
const STOP_MS = 5000

/** How long a start that makes progress may go on in the background. */
const MAX_OVERTIME_MS = 300_000
/** How often a start in overtime must show progress. */
export const PROGRESS_MS = 5000

/** Like `withDeadline`, but goes on after the deadline as long as `goesOn` says so. */
export async function withOvertime<T>(
  deadline: DeadlineOptions,
  goesOn: () => boolean,
  work: (signal: AbortSignal) => Promise<T>
): Promise<T> {
  const { what, ms, code = 'deadline_exceeded' } = deadline
  const late = new AbortController()
  const check = () => {
    if (goesOn()) timer = setTimeout(check, PROGRESS_MS)
    else late.abort(new AppError('timeout', code, `Waited too long for ${what}.`))
  }
  let timer = setTimeout(check, ms)
  const signal = deadline.signal ? AbortSignal.any([deadline.signal, late.signal]) : late.signal
  try {
    return await withDeadline({ ...deadline, ms: ms + MAX_OVERTIME_MS, signal }, work)
  } finally {
    clearTimeout(timer)
  }
}

/** One deadline for all tries to start a server: one that never answers must not take twice as long. */
export class StartBudget {
  readonly #entry: ServerEntry
  #leftMs: number
  readonly #overtime = Promise.withResolvers<never>()
  #isOvertime = false

  constructor(entry: ServerEntry) {
    this.#entry = entry
    this.#leftMs = entry.timeouts.startMs
    this.#overtime.promise.catch(() => {})
  }

  /** Rejects when the time is over but the server still makes progress. */
  get overtime(): Promise<never> {
    return this.#overtime.promise
  }

  /** The start goes on, but nobody waits for it. */
  readonly onOvertime = (): void => {
    this.#isOvertime = true
    this.#overtime.reject(stillStarting(this.#entry))
  }

  get isOver(): boolean {
    return this.#leftMs < this.#entry.timeouts.startMs * MIN_SHARE
  }

  /** The time in the queue does not count against the server, and a start in the background keeps no other from starting. */
  async through<T>(gate: StartGate, open: (signal: AbortSignal, answersBy: number) => Promise<T>): Promise<T> {
    const opening = Promise.withResolvers<T>()
    await gate.run(() => {
      opening.resolve(this.#spend(open))
      const inBackground = this.#overtime.promise.catch(() => {})
      return Promise.race([opening.promise.catch(() => {}), inBackground])
    })
    return opening.promise
  }

  /** `open` gets the time by which the server must have answered, in that of `performance.now()`; listing its tools comes after. */
  async #spend<T>(open: (signal: AbortSignal, answersBy: number) => Promise<T>): Promise<T> {
    const startsAt = performance.now()
    const answersBy = startsAt + this.#leftMs
    const ms = this.#leftMs + this.#entry.timeouts.listMs + STOP_MS
    try {
      const deadline = { what: startOf(this.#entry), ms, code: 'server_start_timeout' }
      return await withOvertime(
        deadline,
        () => this.#isOvertime,
        (signal) => open(signal, answersBy)
      )
    } finally {
      this.#leftMs -= performance.now() - startsAt
    }
  }
}

/** How long a caller waits for a start, the time in the queue included. */
export function longestStartMs({ timeouts: { startMs, listMs } }: ServerEntry): number {
  return 2 * (startMs + listMs) + STOP_MS
}

/** For callers of a start in overtime. */
function stillStarting({ name, timeouts: { startMs } }: ServerEntry): AppError {
  const minutes = MAX_OVERTIME_MS / 60_000
  const message = `The server "${name}" has not answered within ${startMs} ms ("timeoutMs.start") but is still working. It goes on starting in the background for up to ${minutes} minutes: try again soon.`
  return new AppError('timeout', 'server_starting', message, { details: { sent: false, start: true } })
}

export function startOf({ name, timeouts: { startMs, listMs } }: ServerEntry): string {
  return `the server "${name}" to start and list its tools ("timeoutMs" has ${startMs} ms for the start, ${listMs} ms for the list)`
}
