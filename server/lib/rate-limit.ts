/** So many per window for each key, counted in the process; forgets keys that fell silent. */
export class RateLimit {
  readonly #max: number
  readonly #windowMs: number
  #counts = new Map<string, number>()
  #windowEnds = 0

  constructor(max: number, windowMs: number) {
    this.#max = max
    this.#windowMs = windowMs
  }

  /** False when the key has used up its share of this window. */
  take(key: string, now = Date.now()): boolean {
    if (now >= this.#windowEnds) {
      this.#counts = new Map()
      this.#windowEnds = now + this.#windowMs
    }
    const count = (this.#counts.get(key) ?? 0) + 1
    this.#counts.set(key, count)
    return count <= this.#max
  }
}
