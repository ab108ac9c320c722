import { setImmediate as nextTurn } from 'node:timers/promises'
import { crc32 } from 'node:zlib'
import type { WorkspaceEntry } from '../../../workspace-server/protocol.ts'
import { AppError } from '../../lib/errors.ts'
import type { StoredChangeSet } from '../checkpoint-store.ts'

/** One side of a change, without its path. */
export type RecordSide = WorkspaceEntry extends infer E ? (E extends unknown ? Omit<E, 'path'> : never) : never

/** One change set. A large one is split: records with `more` add further changes to the set with the same id. */
export interface SetRecord extends Omit<StoredChangeSet, 'changes'> {
  more?: true
  changes: [path: string, before: RecordSide | null, after: RecordSide | null, from?: string][]
}

export interface ManifestRecord {
  /**
   * Version 2 means that `blobs` names content with holes, version 3 that there are change sets. Older programs would misread the
   * first, and lose the second.
   */
  v: 1 | 2 | 3
  /** Whether the record is the whole state, so that earlier records don't count. The first record of a manifest always is. */
  snapshot: boolean
  /** The snapshot continues in the next record; without that one it does not count. */
  more?: true
  put: WorkspaceEntry[]
  deleted: string[]
  /** Names of pack files, which `blobs` refers to by index. */
  packs: string[]
  /** `stored` is set only if it differs from `length`. */
  blobs: [hash: string, pack: number, offset: number, length: number, stored?: number][]
  /** Ids of change sets that end here, before `sets` are added. */
  drop?: string[]
  sets?: SetRecord[]
  /** Old versions were removed to save space. */
  thinned?: true
}

interface Recorded extends Required<Pick<ManifestRecord, 'snapshot' | 'put' | 'deleted' | 'drop' | 'sets'>> {
  isThinned: boolean
}

type Located = ReadonlyMap<string, { pack: string; offset: number; length: number; stored: number }>

const NEWLINE = 10
const CHECKSUM_CHARS = 8
/** After this many bytes, others get a turn. */
const TURN_BYTES = 1024 * 1024

/** The record with the oldest version that can express it. */
export function manifestRecord(change: Recorded, located: Located): ManifestRecord {
  const { snapshot, put, deleted, drop, sets, isThinned } = change
  const packs = new Map<string, number>()
  const blobs = [...located].map(([hash, { pack, offset, length, stored }]): ManifestRecord['blobs'][number] => {
    const index = packs.get(pack) ?? packs.size
    packs.set(pack, index)
    return stored === length ? [hash, index, offset, length] : [hash, index, offset, length, stored]
  })
  const v = blobs.some((blob) => blob.length === 5) ? 2 : 1
  const plain: ManifestRecord = { v, snapshot, put, deleted, packs: [...packs.keys()], blobs }
  if (drop.length === 0 && sets.length === 0 && !isThinned) return plain
  return {
    ...plain,
    v: 3,
    ...(drop.length > 0 && { drop }),
    ...(sets.length > 0 && { sets }),
    ...(isThinned && { thinned: true })
  }
}

/** One line: checksum, space, JSON. JSON has no raw line breaks, so each line is one record. */
export function encodeRecord(record: ManifestRecord): Buffer {
  const json = Buffer.from(JSON.stringify(record))
  return Buffer.concat([Buffer.from(`${checksum(json)} `), json, Buffer.from('\n')])
}

/** Returns the records before the first incomplete line; `rest` is the number of bytes after them. */
export async function decodeRecords(bytes: Buffer): Promise<{ records: ManifestRecord[]; rest: number }> {
  const records: ManifestRecord[] = []
  let start = 0
  let turnAt = TURN_BYTES
  for (;;) {
    const end = bytes.indexOf(NEWLINE, start)
    const record = end < 0 ? undefined : decodeLine(bytes.subarray(start, end))
    if (!record) return { records, rest: bytes.length - start }
    records.push(record)
    start = end + 1
    if (start < turnAt) continue
    await nextTurn()
    turnAt = start + TURN_BYTES
  }
}

function decodeLine(line: Buffer): ManifestRecord | undefined {
  const json = line.subarray(CHECKSUM_CHARS + 1)
  if (line.toString('latin1', 0, CHECKSUM_CHARS + 1) !== `${checksum(json)} `) return undefined
  const record: ManifestRecord = JSON.parse(json.toString())
  if (record.v >= 1 && record.v <= 3) return record
  const message = 'The files of this session were stored by a newer version of this program; update it.'
  throw new AppError('unavailable', 'checkpoint_too_new', message)
}

function checksum(json: Buffer): string {
  return crc32(json).toString(16).padStart(CHECKSUM_CHARS, '0')
}
