/**
 * A limited number of places in a store that several processes share. Counting first and adding later lets concurrent callers pass
 * the limit, so each caller takes one numbered place with an atomic write. Invariant: only the holder of a place gives it back;
 * a place that its holder has not renewed in time is free for others.
 */
import { isRecord } from '../lib/is-record.ts'
import type { Json, KeyValueStore } from '../storage/key-value-store.ts'

const SPACE = 'approval-places'
const FREE: Json = { holder: '', until: 0 }

export interface WaitingPlace {
  key: string
  value: Json
}
type Places = Pick<KeyValueStore, 'add' | 'list' | 'replace'>

/** Returns undefined if all places are taken. */
export async function takePlace(
  keyValues: Places,
  wanted: { holder: string; until: number; limit: number }
): Promise<WaitingPlace | undefined> {
  const value = { holder: wanted.holder, until: wanted.until }
  const start = Math.floor(Math.random() * wanted.limit)
  const known = new Map((await keyValues.list(SPACE)).map((place) => [place.key, place.value]))
  // A holder that posts the same card again, after a crash, keeps its place.
  for (const [key, place] of known) if (isTaken(place) && isHeldBy(place, wanted.holder)) return { key, value: place }
  for (let step = 0; step < wanted.limit; step++) {
    const key = String((start + step) % wanted.limit)
    const before = known.get(key)
    if (before !== undefined && isTaken(before)) continue
    const isMine =
      before === undefined ? await keyValues.add(SPACE, key, value) : await keyValues.replace(SPACE, key, before, value)
    if (isMine) return { key, value }
  }
  return undefined
}

/** Returns undefined if the place was not renewed in time and somebody else has taken it. */
export async function renewPlace(
  keyValues: Places,
  { key, value }: WaitingPlace,
  renewed: { holder: string; until: number }
): Promise<WaitingPlace | undefined> {
  return (await keyValues.replace(SPACE, key, value, renewed)) ? { key, value: renewed } : undefined
}

export async function leavePlace(keyValues: Places, { key, value }: WaitingPlace): Promise<void> {
  await keyValues.replace(SPACE, key, value, FREE)
}

function isTaken(value: Json): boolean {
  return isRecord(value) && Number(value.until) > Date.now()
}

function isHeldBy(value: Json, holder: string): boolean {
  return isRecord(value) && value.holder === holder
}
