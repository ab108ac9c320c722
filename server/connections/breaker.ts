import { AppError, messageOf } from '../lib/errors.ts'
import { backoffMs } from '../lib/waiting/backoff.ts'

export type BreakerState = 'closed' | 'open' | 'half-open'

const FAILURES_TO_OPEN = 3
const REST = { firstMs: 2000, maxMs: 300_000 }

/** After three failed starts in a row it blocks further starts for a while; then one trial start decides. */
export class Breaker {
  readonly #server: string
  readonly #now: () => number
  #failures = 0
  #openUntil = 0
  #reason = ''

  constructor(server: string, now: () => number = Date.now) {
    this.#server = server
    this.#now = now
  }

  get state(): BreakerState {
    if (this.#failures < FAILURES_TO_OPEN) return 'closed'
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
    const beyond = this.#failures - FAILURES_TO_OPEN + 1
    if (beyond > 0) this.#openUntil = this.#now() + backoffMs(beyond, REST)
  }
}
