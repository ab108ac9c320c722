const MAX_DRIFT_MS = 3_600_000

/** Notices when a clock is set, by comparing it with the time that really passes. */
export class SteadyClock {
  #offset: number | undefined
  #since = 0

  /** How long the clocks have run evenly, in ms; 0 if one of them was set since the last call. */
  steadyMs(...clocks: number[]): number {
    const passed = performance.now()
    const offset = Math.max(...clocks) - passed
    if (this.#offset === undefined || Math.abs(offset - this.#offset) > MAX_DRIFT_MS) {
      this.#offset = offset
      this.#since = passed
    }
    return passed - this.#since
  }
}
