/**
 * The runs that this process could not continue for a reason that may pass: no engine, no image yet, no store. Owns when each is
 * tried again. Invariant: a run that has made a call is not ended by such a failure, until that has lasted for long.
 */
import { isAppError, messageOf } from '../lib/errors.ts'
import { backoffMs } from '../lib/waiting/backoff.ts'
import type { RunState } from './run-log.ts'
import type { RunTimes } from './run-times.ts'

const RETRY_AT_MOST = 6

interface Failure {
  since: number
  times: number
  reason: string
}

export class RunFailures {
  readonly #times: Pick<RunTimes, 'retryMs' | 'expireMs'>
  readonly #failures = new Map<string, Failure>()

  constructor(times: Pick<RunTimes, 'retryMs' | 'expireMs'>) {
    this.#times = times
  }

  /** Returns when to try again, or undefined if this ends the run. */
  retryAt(runId: string, { calls }: RunState, error: unknown): number | undefined {
    const now = Date.now()
    const { since, times } = this.#failures.get(runId) ?? { since: now, times: 0 }
    // Without a call, nothing is lost: its caller learns what is wrong, and may start it again.
    if (calls.size === 0 || !mayPass(error) || since + this.#times.expireMs <= now) return undefined
    this.#failures.set(runId, { since, times: times + 1, reason: messageOf(error) })
    const { retryMs } = this.#times
    return now + backoffMs(times + 1, { firstMs: retryMs, maxMs: retryMs * RETRY_AT_MOST, jitter: 0 })
  }

  reasonOf(runId: string): string | undefined {
    const { reason } = this.#failures.get(runId) ?? {}
    return reason === undefined ? undefined : `The program can't continue now, and is tried again. ${reason}`
  }

  forget(runId: string): void {
    this.#failures.delete(runId)
  }
}

/** Errors that are not ours come from the network or a store. A quota does not pass by itself. */
export function mayPass(error: unknown): boolean {
  if (!isAppError(error)) return true
  return (error.kind === 'unavailable' || error.kind === 'timeout') && !error.code.startsWith('quota_')
}
