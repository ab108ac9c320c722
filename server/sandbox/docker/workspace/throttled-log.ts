import type { Logger } from '../../../lib/logger.ts'
import { RepeatedLines } from '../../../lib/repeated-lines.ts'

/**
 * A log that hostile input can't flood: it writes each message once, then at most once a minute with the number of suppressed
 * ones. `detail` is what the sandbox wrote and is logged at level debug only.
 */
export function createThrottledLog(logger: Logger, now: () => number = Date.now) {
  const lines = new RepeatedLines()
  return (sentence: string, fields: Record<string, unknown>, detail?: string): void => {
    const { write, skipped } = lines.take(sentence, now())
    if (!write) return
    logger.warn({ ...fields, ...(skipped > 0 ? { repeated: skipped } : {}) }, sentence)
    if (detail !== undefined) logger.debug({ ...fields, detail }, sentence)
  }
}
