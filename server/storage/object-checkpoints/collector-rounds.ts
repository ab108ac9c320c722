import { messageOf } from '../../lib/errors.ts'
import { isRecord } from '../../lib/is-record.ts'
import type { Logger } from '../../lib/logger.ts'

const FIRST_MS = 10 * 60_000
const EVERY_MS = 6 * 3_600_000

interface Collecting {
  /** If the result says `isMore`, the next round follows soon. */
  round(): Promise<unknown>
}

/** Cleans up the bucket at intervals. What a round has left, the next one removes. */
export class CollectorRounds {
  readonly #collector: Collecting
  readonly #logger: Logger
  #timer: NodeJS.Timeout | undefined
  #isStopped = false

  constructor(collector: Collecting, logger: Logger) {
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
    let isMore = false
    try {
      const result = await this.#collector.round()
      isMore = isRecord(result) && result.isMore === true
    } catch (error) {
      if (!this.#isStopped) this.#logger.warn({ err: error }, `The bucket was not cleaned up: ${messageOf(error)}`)
    }
    this.start(isMore ? FIRST_MS : EVERY_MS)
  }
}
