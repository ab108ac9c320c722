import { crc32 } from 'node:zlib'
import type { WorkspaceEntry } from '../../../workspace-server/protocol.ts'
import { AppError } from '../../lib/errors.ts'

export interface ManifestRecord {
  /** 2: `blobs` name content with holes, which versions that know only 1 would misread. */
  v: 1 | 2
  /** The whole state: what came before does not count. The first record of a manifest is one. */
  snapshot: boolean
  put: WorkspaceEntry[]
  deleted: string[]
  /** Names of pack files; `blobs` points into it. */
  packs: string[]
  /** `stored` is there when it is not the same as `length`. */
  blobs: [hash: string, pack: number, offset: number, length: number, stored?: number][]
}

const NEWLINE = 10
const CHECKSUM_CHARS = 8

/** One line: checksum, space, JSON. JSON has no raw line breaks, so a line ends where the record does. */
export function encodeRecord(record: ManifestRecord): Buffer {
  const json = Buffer.from(JSON.stringify(record))
  return Buffer.concat([Buffer.from(`${checksum(json)} `), json, Buffer.from('\n')])
}

/** The records up to the first line that is not whole; `rest` is how many bytes come after them. */
export function decodeRecords(bytes: Buffer): { records: ManifestRecord[]; rest: number } {
  const records: ManifestRecord[] = []
  let start = 0
  for (;;) {
    const end = bytes.indexOf(NEWLINE, start)
    const record = end < 0 ? undefined : decodeLine(bytes.subarray(start, end))
    if (!record) return { records, rest: bytes.length - start }
    records.push(record)
    start = end + 1
  }
}

function decodeLine(line: Buffer): ManifestRecord | undefined {
  const json = line.subarray(CHECKSUM_CHARS + 1)
  if (line.toString('latin1', 0, CHECKSUM_CHARS + 1) !== `${checksum(json)} `) return undefined
  const record: ManifestRecord = JSON.parse(json.toString())
  if (record.v === 1 || record.v === 2) return record
  throw new AppError(
    'unavailable',
    'checkpoint_too_new',
    'The files of this session were stored by a newer version of this program; update it.'
  )
}

function checksum(json: Buffer): string {
  return crc32(json).toString(16).padStart(CHECKSUM_CHARS, '0')
}
