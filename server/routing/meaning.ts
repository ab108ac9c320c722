/** Makes similarities from embeddings comparable: models differ in the position and spread of their cosines. */
import type { Similarities } from './port.ts'
import type { Candidate } from './ranking.ts'

/** Below this a tool does not stand out. */
const MIN_DEVIATION = 1
const MAX_DEVIATION = 5
/** How far the first must lead the second, in standard deviations, for meaning alone to give this confidence. */
const SURE_LEAD = 2
const MOST = 0.6

/** By slot: how many standard deviations a tool stands out. Tools that don't stand out are omitted. */
export function standOut(
  similarities: Similarities | undefined,
  slotOf: (key: string) => number | undefined
): Map<number, number> {
  const found = new Map<number, number>()
  const values = [...(similarities?.values() ?? [])]
  if (!similarities || values.length < 2) return found
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  const spread = Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length)
  if (!(spread > 0)) return found
  for (const [key, value] of similarities) {
    const deviation = Math.min(MAX_DEVIATION, (value - mean) / spread)
    const slot = slotOf(key)
    if (slot !== undefined && deviation >= MIN_DEVIATION) found.set(slot, deviation)
  }
  return found
}

/**
 * Confidence in the first match if its meaning stands out: never below what the words give, never above MOST by meaning alone.
 * Unlike the rest of the confidence this is set by hand, not fitted: no public data set has embeddings.
 */
export function withMeaning(confidence: number, ranked: readonly Candidate[]): number {
  const [first] = ranked
  if (!first || first.meaning === 0) return confidence
  // The tools that don't stand out are at most here.
  let rival = MIN_DEVIATION
  for (const candidate of ranked) if (candidate !== first) rival = Math.max(rival, candidate.meaning)
  const lead = Math.min(1, Math.max(0, first.meaning - rival) / SURE_LEAD)
  return Math.max(confidence, MOST * lead)
}
