import { messageOf } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'

const PAUSE_MS = 60_000

export interface BackgroundJobOptions {
  job(signal: AbortSignal): Promise<void>
  warn(error: unknown): void
  now?: () => number
}

/**
 * Runs one job at a time, and again if woken meanwhile. After a failure it pauses; the first wake-up after the pause starts it
 * again.
 */
export class BackgroundJob {
  readonly #options: BackgroundJobOptions
  readonly #end = new AbortController()
  #running: Promise<void> | undefined
  #again = false
  #restsUntil = 0

  constructor(options: BackgroundJobOptions) {
    this.#options = options
  }

  wake(): void {
    this.#again = true
    if (this.#running || this.#end.signal.aborted || this.#now() < this.#restsUntil) return
    this.#running = this.#run().finally(() => {
      this.#running = undefined
    })
  }

  async close(): Promise<void> {
    this.#end.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    const { signal } = this.#end
    try {
      while (this.#again && !signal.aborted) {
        this.#again = false
        await this.#options.job(signal)
      }
    } catch (error) {
      if (signal.aborted) return
      this.#restsUntil = this.#now() + PAUSE_MS
      this.#options.warn(error)
    }
  }

  #now(): number {
    return (this.#options.now ?? Date.now)()
  }
}

/** Logs a failure at most once a minute: what fails once tends to fail with every request. */
export function rareWarning(logger: Logger, what: string, now = Date.now): (error: unknown) => void {
  let silentUntil = 0
  return (error) => {
    if (now() < silentUntil) return
    silentUntil = now() + PAUSE_MS
    logger.warn(`${what}: ${messageOf(error)}`)
  }
}
