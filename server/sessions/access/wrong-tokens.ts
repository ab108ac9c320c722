import type { Logger } from '../../lib/logger.ts'
import { RateLimit, tooFast } from '../../lib/web/rate-limit.ts'

/** Counts wrong tokens by the address that they come from. */
export class WrongTokens {
  readonly #kind: string
  readonly #logger: Logger
  readonly #wrong: RateLimit

  /** `kind`: access or admin. */
  constructor(kind: string, logger: Logger, perMinute = 20) {
    this.#kind = kind
    this.#logger = logger
    this.#wrong = new RateLimit(perMinute, 60_000)
  }

  /** Throws if too many came from this address. */
  count(address: string): void {
    const waitMs = this.#wrong.tryTake(address)
    if (waitMs === 0) return
    this.#logger.warn({ address }, `Many wrong ${this.#kind} tokens come from one address.`)
    throw tooFast(`wrong ${this.#kind} tokens from your address`, waitMs, 'wrong_tokens')
  }
}
