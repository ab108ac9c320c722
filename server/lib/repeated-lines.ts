/** `lastAt` is set if the line is only about those that were left out; it is the time of the last one. */
export type WriteLine = (skipped: number, lastAt?: Date) => void

interface Seen {
  since: number
  skipped: number
  lastAt: number
  write: WriteLine
}

const SWEEP_MS = 5000
const all = new Set<RepeatedLines>()
process.once('exit', flushRepeatedLines)

/** Writes all counts now, so that the next line can be the last one. */
export function flushRepeatedLines(): void {
  for (const lines of all) lines.sweep(Number.POSITIVE_INFINITY)
}

/**
 * Collapses repeated log lines: the first is written, those that follow within the window are only counted. The next line, the end of
 * the window or the end of the process reports the count.
 */
export class RepeatedLines {
  readonly #windowMs: number
  readonly #maxKeys: number
  readonly #seen = new Map<string, Seen>()

  constructor(windowMs = 60_000, maxKeys = 1000) {
    this.#windowMs = windowMs
    this.#maxKeys = maxKeys
    setInterval(() => this.sweep(), SWEEP_MS).unref()
    all.add(this)
  }

  /** Calls `write` with the number of lines like it that were not written since the last one that was, or counts this line. */
  take(key: string, write: WriteLine, now = Date.now()): void {
    const known = this.#seen.get(key)
    if (known && now - known.since < this.#windowMs) {
      known.skipped += 1
      known.lastAt = now
      return
    }
    this.#seen.delete(key)
    this.#seen.set(key, { since: now, skipped: 0, lastAt: now, write })
    // The oldest key goes first: a map keeps the order in which its keys were added.
    if (this.#seen.size > this.#maxKeys) this.#end(this.#seen.keys().next().value ?? '')
    write(known?.skipped ?? 0)
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
    if (known && known.skipped > 0) known.write(known.skipped, new Date(known.lastAt))
  }
}
