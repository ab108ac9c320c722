/**
 * A limited number of places in a store that several processes share. Counting first and adding later lets concurrent callers pass
 * the limit, so each caller takes one numbered place with an atomic write. Invariants: only the holder of a place gives it back;
 * a place that its holder has not renewed in time is free for others. Nobody holds more places than they leave free.
 */
import { isRecord } from '../lib/is-record.ts'
import type { Json, KeyValueStore } from '../storage/key-value-store.ts'

const SPACE = 'approval-places'
const FREE: Json = { holder: '', until: 0 }
/** The most places for the calls of one program. */
const RUN_SHARE = 20

export interface WaitingPlace {
  key: string
  value: Json
}
export interface PlaceHolder {
  holder: string
  owner: string
  /** The program that makes the call. */
  run: string
  until: number
}
/** Says whose calls fill the places that this caller could take. */
export type FullFor = 'run' | 'owner' | 'all'
type Places = Pick<KeyValueStore, 'add' | 'list' | 'replace'>

/** Returns for whom there is no place, if there is none. */
export async function takePlace(
  keyValues: Places,
  { limit, ...wanted }: PlaceHolder & { limit: number }
): Promise<WaitingPlace | FullFor> {
  const value: Json = { ...wanted }
  const start = Math.floor(Math.random() * limit)
  const known = new Map((await keyValues.list(SPACE)).map((place) => [place.key, place.value]))
  // A holder that posts the same card again, after a crash, keeps its place.
  for (const [key, place] of known) if (isTaken(place) && isHeldBy(place, wanted.holder)) return { key, value: place }
  const full = fullShare([...known.values(), value], wanted, limit)
  if (full) return full
  for (let step = 0; step < limit; step++) {
    const key = String((start + step) % limit)
    const before = known.get(key)
    if (before !== undefined && isTaken(before)) continue
    const isMine =
      before === undefined ? await keyValues.add(SPACE, key, value) : await keyValues.replace(SPACE, key, before, value)
    if (isMine) return checkedPlace(keyValues, { key, value }, wanted, limit)
  }
  return 'all'
}

/** Other processes may have taken places for the same owner meanwhile. */
async function checkedPlace(
  keyValues: Places,
  place: WaitingPlace,
  wanted: PlaceHolder,
  limit: number
): Promise<WaitingPlace | FullFor> {
  const all = (await keyValues.list(SPACE)).map(({ value }) => value)
  const full = fullShare(all, wanted, limit)
  if (!full) return place
  await leavePlace(keyValues, place)
  return full
}

/** `places` contains the wanted one. */
function fullShare(places: Json[], { owner, run }: PlaceHolder, limit: number): 'run' | 'owner' | undefined {
  const taken = places.filter(isTaken)
  if (run !== '' && taken.filter((place) => isOf(place, 'run', run)).length > RUN_SHARE) return 'run'
  const own = taken.filter((place) => isOf(place, 'owner', owner)).length
  return own > 1 && own > limit - taken.length + 1 ? 'owner' : undefined
}

/** Returns undefined if the place was not renewed in time and somebody else has taken it. */
export async function renewPlace(
  keyValues: Places,
  { key, value }: WaitingPlace,
  until: number
): Promise<WaitingPlace | undefined> {
  const renewed: Json = { ...(isRecord(value) ? value : {}), until }
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

/** Another version of this program writes no owner. */
function isOf(value: Json, what: 'owner' | 'run', name: string): boolean {
  return isRecord(value) && (value[what] ?? '') === name
}
