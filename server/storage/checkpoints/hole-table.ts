/**
 * The format of sparse content in a pack: the bytes outside its holes, then a table of the holes, then their number. Content
 * without holes is stored as it is.
 */
import { type ContentRun, withoutZeros, zeroRuns } from '../../../workspace-server/checkpoint/zero-runs.ts'
import { contentDamaged } from './checkpoint-errors.ts'

const FIELD_BYTES = 6
const ROW_BYTES = 2 * FIELD_BYTES
export const COUNT_BYTES = 4

export interface Hole {
  at: number
  length: number
}

/** Collects the holes of content that arrives in chunks. */
export class HoleTable {
  readonly #holes: Hole[] = []
  #length = 0

  /** Returns the bytes of this chunk to store. */
  take(chunk: Uint8Array): Uint8Array {
    const runs = zeroRuns(chunk)
    for (const run of runs) if (run.isZero) this.#add(run)
    this.#length += chunk.length
    return withoutZeros(chunk, runs)
  }

  /** The table to store after the last chunk; empty if there are no holes. */
  encode(): Buffer {
    if (this.#holes.length === 0) return Buffer.alloc(0)
    const table = Buffer.alloc(this.#holes.length * ROW_BYTES + COUNT_BYTES)
    for (const [i, { at, length }] of this.#holes.entries()) {
      table.writeUIntBE(at, i * ROW_BYTES, FIELD_BYTES)
      table.writeUIntBE(length, i * ROW_BYTES + FIELD_BYTES, FIELD_BYTES)
    }
    table.writeUInt32BE(this.#holes.length, table.length - COUNT_BYTES)
    return table
  }

  #add({ at, length }: ContentRun): void {
    const start = this.#length + at
    const last = this.#holes.at(-1)
    if (last && last.at + last.length === start) last.length += length
    else this.#holes.push({ at: start, length })
  }
}

export function tableBytes(count: number): number {
  return count * ROW_BYTES
}

/** Throws if the table does not describe content of this length with `dataBytes` bytes outside its holes. */
export function decodeHoles(table: Buffer, length: number, dataBytes: number): Hole[] {
  const holes: Hole[] = []
  let end = 0
  let zeros = 0
  for (let row = 0; row < table.length; row += ROW_BYTES) {
    const hole = {
      at: table.readUIntBE(row, FIELD_BYTES),
      length: table.readUIntBE(row + FIELD_BYTES, FIELD_BYTES)
    }
    if (hole.at < end || hole.length === 0) throw contentDamaged()
    end = hole.at + hole.length
    zeros += hole.length
    holes.push(hole)
  }
  if (end > length || zeros + dataBytes !== length) throw contentDamaged()
  return holes
}
