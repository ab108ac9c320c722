/**
 * The manifest of a session's files as objects: a `base` with the whole state, and a `tail` with all changes since. Each commit
 * writes one of them, so its cost depends on what changed. The head in the session store says which of them count.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { AppError } from '../../lib/errors.ts'
import { isRecord } from '../../lib/is-record.ts'
import { type Change, CheckpointState, deltaRecord, type Location, replay } from '../checkpoints/checkpoint-state.ts'
import { decodeRecords, encodeRecord } from '../checkpoints/manifest-record.ts'
import type { ObjectCache } from './object-cache.ts'
import { packBytes } from './object-names.ts'

export interface Head {
  epoch: number
  base: string
  tail?: string
  /** The size of all objects that count. */
  bytes: number
}

const NEWLINE = 10

export function encodeHead(head: Head): string {
  return JSON.stringify({ v: 1, ...head })
}

export function decodeHead(text: string): Head {
  const value: unknown = JSON.parse(text)
  if (!isRecord(value) || typeof value.base !== 'string') throw headDamaged()
  if (value.v !== 1) {
    const message = 'The files of this session were stored by a newer version of this program; update it.'
    throw new AppError('unavailable', 'checkpoint_too_new', message)
  }
  const { epoch, base, tail, bytes } = value
  return { epoch: Number(epoch), base, bytes: Number(bytes), ...(typeof tail === 'string' && { tail }) }
}

/** The state that a head names, and the lines of its tail. */
export async function loadState(
  cache: Pick<ObjectCache, 'readAll'>,
  folder: string,
  { base, tail }: Head
): Promise<{ state: CheckpointState; tail: Buffer }> {
  const [first, rest] = await Promise.all([
    cache.readAll(folder + base),
    tail === undefined ? Buffer.alloc(0) : cache.readAll(folder + tail)
  ])
  let state = new CheckpointState()
  for (const bytes of [first, rest]) {
    const { records, rest: unread } = await decodeRecords(bytes)
    if (unread > 0) throw headDamaged()
    for (const record of records) {
      const next = replay(state, record)
      if (!next) throw headDamaged()
      state = next
      if (record.more) await nextTurn()
    }
  }
  return { state, tail: rest }
}

/** The content of the next manifest object, and whether it is a base or a tail. */
export function nextManifest(
  before: { state: CheckpointState; hasBase: boolean; tail: Buffer },
  change: Change,
  located: ReadonlyMap<string, Location>
): { kind: 'base' | 'tail'; bytes: Buffer } {
  if (before.hasBase) {
    const tail = Buffer.concat([before.tail, encodeRecord(deltaRecord(change, located))])
    // Merging packs writes a base too, and has half of the way to be first.
    if (tailsPerBase(tail, before.state) <= 2) return { kind: 'tail', bytes: tail }
  }
  const none = { pack: '', offset: 0, length: 0, stored: 0 }
  const after = before.state.clone().apply(change, (hash) => located.get(hash) ?? none)
  return { kind: 'base', bytes: snapshotOf(after) }
}

/**
 * How many times what a base costs was written since the last one, in tails that each repeat the one before. A new base at one or two
 * keeps the sum of both small, whatever the number of files.
 */
export function tailsPerBase(tail: Buffer, { manifestBytes }: CheckpointState): number {
  let written = 0
  for (let end = tail.indexOf(NEWLINE); end >= 0; end = tail.indexOf(NEWLINE, end + 1)) written += end + 1
  return written / Math.max(1, manifestBytes)
}

export function snapshotOf(state: CheckpointState): Buffer {
  return Buffer.concat([...state.snapshot()].map(encodeRecord))
}

/** The total size of the packs that a state names. */
export function packsBytes(packs: Iterable<string>): number {
  let sum = 0
  for (const name of packs) sum += packBytes(name)
  return sum
}

function headDamaged(): AppError {
  const message =
    'The stored files of this session are damaged; restore the bucket and the session store from a copy, or remove the session.'
  return new AppError('internal', 'checkpoint_damaged', message)
}
