export interface Pace {
  firstMs: number
  maxMs: number
}

/** Does a job when it is asked to: at once after a time of quiet, else ever less often, and never twice at a time. It must not fail. */
export class PacedJob {
  readonly #job: () => Promise<void>
  readonly #pace: Pace
  #isAsked = false
  #isRunning = false
  #gapMs = 0
  #endedAt = Number.NEGATIVE_INFINITY

  constructor(job: () => Promise<void>, pace: Pace) {
    this.#job = job
    this.#pace = pace
  }

  ask(): void {
    if (this.#isAsked) return
    this.#isAsked = true
    if (!this.#isRunning) this.#schedule()
  }

  #schedule(): void {
    const { firstMs, maxMs } = this.#pace
    const quietMs = performance.now() - this.#endedAt
    this.#gapMs = quietMs >= maxMs ? 0 : Math.min(Math.max(2 * this.#gapMs, firstMs), maxMs)
    setTimeout(() => void this.#run(), Math.max(0, this.#gapMs - quietMs)).unref()
  }

  async #run(): Promise<void> {
    this.#isAsked = false
    this.#isRunning = true
    try {
      await this.#job()
    } finally {
      this.#isRunning = false
      this.#endedAt = performance.now()
      if (this.#isAsked) this.#schedule()
    }
  }
}
