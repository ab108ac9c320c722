import { createHash, hash as digestOf } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { contentDamaged } from './checkpoint-errors.ts'
import type { Location } from './checkpoint-state.ts'
import { readFully } from './file-io.ts'
import { COUNT_BYTES, decodeHoles, type Hole, tableBytes } from './hole-table.ts'

const ZEROS = Buffer.alloc(1024 * 1024)
const MAX_CONTENT_BYTES = 256 * 1024
const MAX_RUN_BYTES = 4 * 1024 * 1024
/** Reading over content that nobody wants is cheaper than another read. */
const MAX_GAP_BYTES = 16 * 1024

export interface WantedContent extends Location {
  hash: string
}

interface Run {
  pack: string
  offset: number
  end: number
  /** Positions in the list of what is wanted. */
  members: number[]
}

/** Yields content in chunks of at most `chunkBytes`. The last chunk comes only if the whole content matches its hash. */
export async function* readContent(
  handle: FileHandle,
  hash: string,
  location: Location,
  chunkBytes: number
): AsyncIterable<Uint8Array> {
  const digest = createHash('sha256')
  let done = 0
  for await (const chunk of pieces(handle, location, chunkBytes)) {
    digest.update(chunk)
    done += chunk.length
    if (done === location.length && digest.digest('hex') !== hash) throw contentDamaged()
    yield chunk
  }
  if (location.length === 0 && digest.digest('hex') !== hash) throw contentDamaged()
}

async function* pieces(handle: FileHandle, location: Location, chunkBytes: number): AsyncIterable<Buffer> {
  const { offset, length } = location
  let stored = offset
  let done = 0
  for (const hole of [...(await holesOf(handle, location)), { at: length, length: 0 }]) {
    while (done < hole.at) {
      const chunk = await readAll(handle, stored, Math.min(chunkBytes, hole.at - done))
      stored += chunk.length
      done += chunk.length
      yield chunk
    }
    for (const end = hole.at + hole.length; done < end; ) {
      const chunk = ZEROS.subarray(0, Math.min(chunkBytes, end - done))
      done += chunk.length
      yield chunk
    }
  }
}

async function holesOf(handle: FileHandle, { offset, length, stored }: Location): Promise<Hole[]> {
  if (stored === length) return []
  const end = offset + stored - COUNT_BYTES
  if (end < offset) throw contentDamaged()
  const bytes = tableBytes((await readAll(handle, end, COUNT_BYTES)).readUInt32BE())
  if (end - bytes < offset) throw contentDamaged()
  return decodeHoles(await readAll(handle, end - bytes, bytes), length, end - bytes - offset)
}

async function readAll(handle: FileHandle, position: number, length: number): Promise<Buffer> {
  const bytes = await readFully(handle, position, length)
  if (bytes.length < length) throw contentDamaged()
  return bytes
}

/** Small contents lie one behind the other in a pack, so many of them are read in one go. */
export function runsOf(wanted: readonly WantedContent[]): Run[] {
  const small = [...wanted.entries()].filter(([, { length, stored }]) => {
    return length === stored && length <= MAX_CONTENT_BYTES
  })
  small.sort(([, a], [, b]) => (a.pack === b.pack ? a.offset - b.offset : a.pack < b.pack ? -1 : 1))
  const runs: Run[] = []
  for (const [at, { pack, offset, stored }] of small) {
    const last = runs.at(-1)
    const end = offset + stored
    const isNext = last?.pack === pack && offset - last.end <= MAX_GAP_BYTES && end - last.offset <= MAX_RUN_BYTES
    if (last && isNext) {
      last.end = Math.max(last.end, end)
      last.members.push(at)
    } else runs.push({ pack, offset, end, members: [at] })
  }
  return runs
}

/** The content in bytes that were read from this offset on. Throws if it does not match its hash. */
export function checked(wanted: WantedContent | undefined, bytes: Buffer, from: number): Buffer {
  if (!wanted) throw contentDamaged()
  const { hash, offset, stored } = wanted
  const content = bytes.subarray(offset - from, offset - from + stored)
  if (content.length !== stored || digestOf('sha256', content, 'hex') !== hash) throw contentDamaged()
  return content
}
