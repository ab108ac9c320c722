import type { ServerEntry } from '../catalog/server-entry.ts'
import { withDeadline } from '../lib/waiting/deadline.ts'

/** With less than this share of the time left, another try would only hide the reason of the first. */
const MIN_SHARE = 0.1
/** For stopping a child that did not answer, so that the reason is not lost to the deadline. */
const STOP_MS = 5000

/** One deadline for all tries to start a server: one that never answers must not take twice as long. */
export class StartBudget {
  readonly #entry: ServerEntry
  #leftMs: number

  constructor(entry: ServerEntry) {
    this.#entry = entry
    this.#leftMs = entry.timeouts.startMs
  }

  get isOver(): boolean {
    return this.#leftMs < this.#entry.timeouts.startMs * MIN_SHARE
  }

  /** `open` gets the time by which the server must have answered, in that of `performance.now()`; listing its tools comes after. */
  async spend<T>(open: (signal: AbortSignal, answersBy: number) => Promise<T>): Promise<T> {
    const startsAt = performance.now()
    const answersBy = startsAt + this.#leftMs
    const ms = this.#leftMs + this.#entry.timeouts.listMs + STOP_MS
    try {
      const deadline = { what: startOf(this.#entry), ms, code: 'server_start_timeout' }
      return await withDeadline(deadline, (signal) => open(signal, answersBy))
    } finally {
      this.#leftMs -= performance.now() - startsAt
    }
  }
}

/** How long a caller waits for a start, the time in the queue included. */
export function longestStartMs({ timeouts: { startMs, listMs } }: ServerEntry): number {
  return 2 * (startMs + listMs) + STOP_MS
}

export function startOf({ name, timeouts: { startMs, listMs } }: ServerEntry): string {
  return `the server "${name}" to start and list its tools ("timeoutMs" has ${startMs} ms for the start, ${listMs} ms for the list)`
}
