interface Seen {
  since: number
  skipped: number
  atEnd: ((skipped: number) => void) | undefined
}

/** Collapses repeated log lines: the first is written, those that follow within the window are only counted. */
export class RepeatedLines {
  readonly #windowMs: number
  readonly #maxKeys: number
  readonly #seen = new Map<string, Seen>()

  constructor(windowMs = 60_000, maxKeys = 1000) {
    this.#windowMs = windowMs
    this.#maxKeys = maxKeys
  }

  /**
   * Whether to write this line. `skipped`: how many like it were not written since the last one that was. `sweep` calls `atEnd`
   * with that number if no further line reports it.
   */
  take(key: string, now = Date.now(), atEnd?: (skipped: number) => void): { write: boolean; skipped: number } {
    const known = this.#seen.get(key)
    if (known && now - known.since < this.#windowMs) {
      known.skipped += 1
      return { write: false, skipped: known.skipped }
    }
    this.#seen.delete(key)
    this.#seen.set(key, { since: now, skipped: 0, atEnd })
    // The oldest key goes first: a map keeps the order in which its keys were added.
    if (this.#seen.size > this.#maxKeys) this.#end(this.#seen.keys().next().value ?? '')
    return { write: true, skipped: known?.skipped ?? 0 }
  }

  /** Reports the lines whose window is over. */
  sweep(now = Date.now()): void {
    for (const [key, { since }] of this.#seen) {
      if (now - since < this.#windowMs) return
      this.#end(key)
    }
  }

  #end(key: string): void {
    const known = this.#seen.get(key)
    this.#seen.delete(key)
    if (known && known.skipped > 0) known.atEnd?.(known.skipped)
  }
}
