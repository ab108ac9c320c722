const EVERY_MS = 250
/** Long enough for a deadline that passed while the loop stood still. */
const RECENT_MS = 10_000

/**
 * Watches how long this process was too busy to read answers. Without it, the partner of a call that timed out would be blamed for
 * what happened here.
 */
export class LoopLag {
  #last = performance.now()
  #lag = { ms: 0, at: Number.NEGATIVE_INFINITY }
  readonly #timer: NodeJS.Timeout

  constructor() {
    this.#timer = setInterval(() => this.#look(), EVERY_MS).unref()
  }

  /** The longest standstill that ended in the last seconds. */
  get recentMs(): number {
    this.#look()
    return performance.now() - this.#lag.at < RECENT_MS ? this.#lag.ms : 0
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #look(): void {
    const now = performance.now()
    const ms = Math.max(0, now - this.#last - EVERY_MS)
    this.#last = now
    if (ms >= this.#lag.ms || now - this.#lag.at >= RECENT_MS) this.#lag = { ms, at: now }
  }
}
