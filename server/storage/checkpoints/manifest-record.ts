import { setImmediate as nextTurn } from 'node:timers/promises'
import { crc32 } from 'node:zlib'
import type { WorkspaceEntry } from '../../../workspace-server/protocol.ts'
import { AppError } from '../../lib/errors.ts'

export interface ManifestRecord {
  /** Version 2 means that `blobs` names content with holes, which older programs would misread. */
  v: 1 | 2
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
}

const NEWLINE = 10
const CHECKSUM_CHARS = 8
/** After this many bytes, others get a turn. */
const TURN_BYTES = 1024 * 1024

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
  if (record.v === 1 || record.v === 2) return record
  const message = 'The files of this session were stored by a newer version of this program; update it.'
  throw new AppError('unavailable', 'checkpoint_too_new', message)
}

function checksum(json: Buffer): string {
  return crc32(json).toString(16).padStart(CHECKSUM_CHARS, '0')
}
