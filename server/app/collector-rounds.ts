import { messageOf } from '../lib/errors.ts'
import type { Logger } from '../lib/logger.ts'

const FIRST_MS = 10 * 60_000
const EVERY_MS = 6 * 3_600_000

/** Cleans up the bucket at intervals. What a failed round has left, the next one removes. */
export class CollectorRounds {
  readonly #collector: { round(): Promise<unknown> }
  readonly #logger: Logger
  #timer: NodeJS.Timeout | undefined
  #isStopped = false

  constructor(collector: { round(): Promise<unknown> }, logger: Logger) {
    this.#collector = collector
    this.#logger = logger
  }

  start(waitMs = FIRST_MS): void {
    if (!this.#isStopped) this.#timer = setTimeout(() => void this.#round(), waitMs).unref()
  }

  /** Does not wait for a running round: the next start cleans up what is left. */
  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  async #round(): Promise<void> {
    try {
      await this.#collector.round()
    } catch (error) {
      if (!this.#isStopped) this.#logger.warn({ err: error }, `The bucket was not cleaned up: ${messageOf(error)}`)
    }
    this.start(EVERY_MS)
  }
}
