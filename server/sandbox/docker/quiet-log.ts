import type { Logger } from '../../lib/logger.ts'

const INTERVAL_MS = 10_000

/** A log that hostile input can't flood: one line per kind at once, then at most one per interval with how many it stands for. */
export function createQuietLog(logger: Logger, now: () => number = Date.now) {
  const kinds = new Map<string, { loggedAt: number; unlogged: number }>()
  return (kind: string, details: Record<string, unknown>): void => {
    const seen = kinds.get(kind)
    const at = now()
    if (seen && at - seen.loggedAt < INTERVAL_MS) {
      seen.unlogged++
      return
    }
    kinds.set(kind, { loggedAt: at, unlogged: 0 })
    logger.warn({ ...details, alsoSince: seen?.unlogged ?? 0 }, `sandbox stream: ${kind}`)
  }
}
