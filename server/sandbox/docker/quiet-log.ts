import type { Logger } from '../../lib/logger.ts'
import { RepeatedLines } from '../../lib/repeated-lines.ts'

const INTERVAL_MS = 10_000

/** A log that hostile input can't flood: one line per kind at once, then at most one per interval with how many it stands for. */
export function createQuietLog(logger: Logger, now: () => number = Date.now) {
  const lines = new RepeatedLines(INTERVAL_MS)
  return (kind: string, details: Record<string, unknown>): void => {
    const { write, skipped } = lines.take(kind, now())
    if (write) logger.warn({ ...details, alsoSince: skipped }, `sandbox stream: ${kind}`)
  }
}
