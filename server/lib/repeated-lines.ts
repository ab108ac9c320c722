/** Collapses repeated log lines: the first is written, those that follow within the window are counted on the next one. */
export class RepeatedLines {
  readonly #windowMs: number
  readonly #maxKeys: number
  readonly #seen = new Map<string, { since: number; skipped: number }>()

  constructor(windowMs = 60_000, maxKeys = 1000) {
    this.#windowMs = windowMs
    this.#maxKeys = maxKeys
  }

  /** Whether to write this line. `skipped`: how many like it were not written since the last one that was. */
  take(key: string, now = Date.now()): { write: boolean; skipped: number } {
    const known = this.#seen.get(key)
    if (known && now - known.since < this.#windowMs) {
      known.skipped += 1
      return { write: false, skipped: known.skipped }
    }
    this.#seen.delete(key)
    this.#seen.set(key, { since: now, skipped: 0 })
    // The oldest key goes first: a map keeps the order in which its keys were added.
    if (this.#seen.size > this.#maxKeys) this.#seen.delete(this.#seen.keys().next().value ?? '')
    return { write: true, skipped: known?.skipped ?? 0 }
  }
}
