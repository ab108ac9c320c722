import type { Progress } from '@modelcontextprotocol/client'

const WINDOW_MS = 1000
const PER_WINDOW = 20
const MAX_MESSAGE_CHARS = 2000

/**
 * Limits the rate of a call's progress reports. At an ordinary rate all of them are passed on; in a flood, only the newest, a few
 * times a second. Otherwise each report would wait in memory for a client that may never read it.
 */
export class CalmProgress {
  readonly #tell: (progress: Progress) => void
  #windowAt = Number.NEGATIVE_INFINITY
  #told = 0
  #latest: Progress | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(tell: (progress: Progress) => void) {
    this.#tell = tell
  }

  readonly push = (progress: Progress): void => {
    const { message } = progress
    const isLong = message !== undefined && message.length > MAX_MESSAGE_CHARS
    const short = isLong ? { ...progress, message: message.slice(0, MAX_MESSAGE_CHARS) } : progress
    const passedMs = performance.now() - this.#windowAt
    if (passedMs >= WINDOW_MS) this.#begin()
    if (this.#told < PER_WINDOW) {
      this.#told++
      this.#latest = undefined
      this.#tell(short)
      return
    }
    this.#latest = short
    this.#timer ??= setTimeout(this.flush, WINDOW_MS - passedMs).unref()
  }

  /** Sends the waiting report now, because the answer comes next. */
  readonly flush = (): void => {
    const latest = this.#latest
    this.stop()
    this.#begin()
    if (latest === undefined) return
    this.#told++
    this.#tell(latest)
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#latest = undefined
  }

  #begin(): void {
    this.#windowAt = performance.now()
    this.#told = 0
  }
}

/** Runs a job with limited progress reports. Costs nothing if the caller wants none. */
export async function calmly<T>(
  onProgress: ((progress: Progress) => void) | undefined,
  job: (calm: typeof onProgress) => Promise<T>
): Promise<T> {
  if (onProgress === undefined) return job(undefined)
  const calm = new CalmProgress(onProgress)
  try {
    const result = await job(calm.push)
    calm.flush()
    return result
  } finally {
    calm.stop()
  }
}
