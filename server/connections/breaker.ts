import { AppError, isAppError, messageOf } from '../lib/errors.ts'
import { backoffMs } from '../lib/waiting/backoff.ts'

export type BreakerState = 'closed' | 'open' | 'half-open'

const STARTS_TO_OPEN = 3
const REST = { firstMs: 2000, maxMs: 300_000 }

interface BreakerOptions {
  /** Number of failures in a row that open it; by default that of starts. */
  failuresToOpen?: number
  now?: () => number
}

/** After some failures in a row, three by default, it blocks further tries for a while; then one trial decides. */
export class Breaker {
  readonly #server: string
  readonly #failuresToOpen: number
  readonly #now: () => number
  #failures = 0
  #openUntil = 0
  #reason = ''

  constructor(server: string, { failuresToOpen = STARTS_TO_OPEN, now = Date.now }: BreakerOptions = {}) {
    this.#server = server
    this.#failuresToOpen = failuresToOpen
    this.#now = now
  }

  get state(): BreakerState {
    if (this.#failures < this.#failuresToOpen) return 'closed'
    return this.#now() < this.#openUntil ? 'open' : 'half-open'
  }

  /** Throws while the breaker is open. */
  check(): void {
    if (this.state !== 'open') return
    const seconds = Math.max(1, Math.ceil((this.#openUntil - this.#now()) / 1000))
    const message = `The server "${this.#server}" failed ${this.#failures} times in a row and will be retried in ${seconds} s. ${this.#reason}`
    throw new AppError('unavailable', 'server_resting', message, { details: { sent: false, reason: this.#reason } })
  }

  succeeded(): void {
    this.#failures = 0
  }

  failed(error: unknown): void {
    this.#failures++
    this.#reason = messageOf(error)
    const beyond = this.#failures - this.#failuresToOpen + 1
    if (beyond > 0) this.#openUntil = this.#now() + backoffMs(beyond, REST)
  }
}

/** A server that hangs, is gone, or answers with what nobody can read has failed itself. */
const OF_THE_SERVER = ['child_timeout', 'child_lost', 'child_answer_invalid']

/** Counts a failed call. An error that the server answers is a sign of life: most servers answer so to wrong arguments too. */
export function countFailure(calls: Breaker, error: unknown): void {
  if (OF_THE_SERVER.some((code) => isAppError(error, code))) calls.failed(error)
  else if (isAppError(error, 'child_refused')) calls.succeeded()
}
