import { AppError } from '../errors.ts'

interface Window {
  count: number
  endsAt: number
}

/** At this many keys, the oldest windows are dropped, because clients can make up keys. */
const MAX_KEYS = 100_000
/** Dropped together: finding the oldest entry of a Map takes longer the more entries before it were deleted. */
const DROPPED_AT_ONCE = MAX_KEYS / 10

/** Limits the number per window for each key, counted in this process. Refused attempts do not count. */
export class RateLimit {
  readonly #max: number
  readonly #windowMs: number
  /** Oldest first. */
  readonly #windows = new Map<string, Window>()
  #forgetAt = 0

  constructor(max: number, windowMs: number) {
    this.#max = max
    this.#windowMs = windowMs
  }

  /** 0 if there is room for this many, else the milliseconds until there is. More than the limit fit into an empty window. */
  waitMs(key: string, now = performance.now(), amount = 1): number {
    const window = this.#window(key, now)
    return window && window.count > 0 && window.count + amount > this.#max ? window.endsAt - now : 0
  }

  /** 0 if there was room, else the milliseconds until there is. */
  tryTake(key: string, now = performance.now(), amount = 1): number {
    const waitMs = this.waitMs(key, now, amount)
    if (waitMs > 0) return waitMs
    this.#forget(now)
    const window = this.#window(key, now) ?? { count: 0, endsAt: now + this.#windowMs }
    window.count += amount
    this.#windows.set(key, window)
    return 0
  }

  /** Throws `too_fast` with the time to come back. `what` as in "Too many …". */
  enter(key: string, what: string): void {
    const waitMs = this.tryTake(key)
    if (waitMs > 0) throw tooFast(what, waitMs)
  }

  /** Returns one unit that was taken but not used. */
  giveBack(key: string): void {
    const window = this.#windows.get(key)
    if (window && window.count > 0) window.count -= 1
  }

  #window(key: string, now: number): Window | undefined {
    const window = this.#windows.get(key)
    if (!window || window.endsAt > now) return window
    this.#windows.delete(key)
    return undefined
  }

  #forget(now: number): void {
    const isFull = this.#windows.size >= MAX_KEYS
    if (!isFull && now < this.#forgetAt) return
    this.#forgetAt = now + this.#windowMs
    const most = isFull ? MAX_KEYS - DROPPED_AT_ONCE : MAX_KEYS
    for (const [key, { endsAt }] of this.#windows) {
      if (endsAt > now && this.#windows.size <= most) return
      this.#windows.delete(key)
    }
  }
}

/** `reason` says for operators which limit it was, if not the usual one for requests. */
export function tooFast(what: string, waitMs: number, reason?: string): AppError {
  const retryAfterSeconds = Math.ceil(waitMs / 1000)
  const time = retryAfterSeconds === 1 ? 'a second' : `${retryAfterSeconds} seconds`
  const message = `Too many ${what} in a short time: try again in ${time}.`
  return new AppError('unavailable', 'too_fast', message, { details: { retryAfterSeconds, reason } })
}
