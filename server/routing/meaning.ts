/** Likeness by embeddings, made comparable: models differ in where their cosines lie and how far they spread. */
import type { Likeness } from './port.ts'
import type { Candidate } from './ranking.ts'

/** Below this a tool is one of the crowd. */
const MIN_DEVIATION = 1
const MAX_DEVIATION = 5
/** Lead of the first over the second, in deviations, at which meaning alone is believed this much. */
const SURE_LEAD = 2
const MOST = 0.6

/** By slot: how many standard deviations a tool stands out; those that don't are left out. */
export function standOut(
  likeness: Likeness | undefined,
  slotOf: (key: string) => number | undefined
): Map<number, number> {
  const found = new Map<number, number>()
  const values = [...(likeness?.values() ?? [])]
  if (!likeness || values.length < 2) return found
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  const spread = Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length)
  if (!(spread > 0)) return found
  for (const [key, value] of likeness) {
    const deviation = Math.min(MAX_DEVIATION, (value - mean) / spread)
    const slot = slotOf(key)
    if (slot !== undefined && deviation >= MIN_DEVIATION) found.set(slot, deviation)
  }
  return found
}

/**
 * Confidence in the first when its meaning stands out: never below what the words say, never above MOST by meaning alone.
 * Unlike the rest of the confidence this is set by hand, not fitted: no public data comes with embeddings.
 */
export function withMeaning(confidence: number, ranked: readonly Candidate[]): number {
  const [first] = ranked
  if (!first || first.meaning === 0) return confidence
  // Those of the crowd are at most there.
  let rival = MIN_DEVIATION
  for (const candidate of ranked) if (candidate !== first) rival = Math.max(rival, candidate.meaning)
  const lead = Math.min(1, Math.max(0, first.meaning - rival) / SURE_LEAD)
  return Math.max(confidence, MOST * lead)
}
