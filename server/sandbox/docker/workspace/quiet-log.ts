import type { Logger } from '../../../lib/logger.ts'
import { RepeatedLines } from '../../../lib/repeated-lines.ts'

/**
 * A log that hostile input can't flood: one line per sentence, then at most one a minute with how many were left out. `detail` is
 * what the sandbox wrote, which is shown at the level debug only.
 */
export function createQuietLog(logger: Logger, now: () => number = Date.now) {
  const lines = new RepeatedLines()
  return (sentence: string, fields: Record<string, unknown>, detail?: string): void => {
    const { write, skipped } = lines.take(sentence, now())
    if (!write) return
    logger.warn({ ...fields, ...(skipped > 0 ? { repeated: skipped } : {}) }, sentence)
    if (detail !== undefined) logger.debug({ ...fields, detail }, sentence)
  }
}
