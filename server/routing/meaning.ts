/** Makes similarities from embeddings comparable: models differ in the position and spread of their cosines. */
import type { Similarities } from './port.ts'

/** From here on a tool is a candidate by its meaning alone. */
export const STANDS_OUT = 1
const MAX_DEVIATION = 5

export interface Meaning {
  /** By slot: how many standard deviations a tool is above the mean. */
  deviation: ReadonlyMap<number, number>
  /** By slot: the similarity itself. */
  level: ReadonlyMap<number, number>
}

const NONE: Meaning = { deviation: new Map(), level: new Map() }

/** Empty if nothing can be compared. */
export function readMeaning(
  similarities: Similarities | undefined,
  slotOf: (key: string) => number | undefined
): Meaning {
  const values = [...(similarities?.values() ?? [])].filter(Number.isFinite)
  if (!similarities || values.length < 2) return NONE
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  const spread = Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length)
  if (!(spread > 0)) return NONE
  const deviation = new Map<number, number>()
  const level = new Map<number, number>()
  for (const [key, value] of similarities) {
    const slot = slotOf(key)
    if (slot === undefined || !Number.isFinite(value)) continue
    deviation.set(slot, Math.max(-MAX_DEVIATION, Math.min(MAX_DEVIATION, (value - mean) / spread)))
    level.set(slot, value)
  }
  return { deviation, level }
}
