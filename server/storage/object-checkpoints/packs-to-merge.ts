import type { CheckpointState } from '../checkpoints/checkpoint-state.ts'
import { packBytes } from './object-names.ts'

const SMALL_BYTES = 8 * 1024 * 1024
const MAX_SMALL_PACKS = 128
/** When the base is due anyway. */
const MANY_SMALL_PACKS = 32
const MERGED_BYTES = 16 * 1024 * 1024
const MIN_DEAD_BYTES = 1024 * 1024

/**
 * The packs that are worth rewriting. Every commit writes one, so small ones are merged when there are many. Those of which at least
 * half is dead are rewritten when their dead content is as large as all live content. It costs a base, so with many files it waits for it.
 */
export function packsToMerge(state: CheckpointState, isBaseDue: boolean): Set<string> {
  const packs = [...state.packUse()].map(([name, live]) => ({ name, live, bytes: packBytes(name) }))
  const total = packs.reduce((sum, { bytes }) => sum + bytes, 0)
  const chosen = new Set<string>()
  if (total > Math.max(MIN_DEAD_BYTES, 2 * state.liveBytes)) {
    for (const { name, live, bytes } of packs) if (2 * live <= bytes) chosen.add(name)
  }
  const small = packs.filter(({ bytes }) => bytes < SMALL_BYTES).sort((a, b) => a.live - b.live)
  if (small.length <= (isBaseDue ? MANY_SMALL_PACKS : MAX_SMALL_PACKS)) return chosen
  let merged = 0
  for (const { name, live } of small) {
    if (merged + live > MERGED_BYTES) break
    chosen.add(name)
    merged += live
  }
  return chosen
}
