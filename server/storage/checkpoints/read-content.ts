import { createHash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { contentDamaged } from './checkpoint-errors.ts'
import type { Location } from './checkpoint-state.ts'
import { readFully } from './file-io.ts'
import { COUNT_BYTES, decodeHoles, type Hole, tableBytes } from './hole-table.ts'

const ZEROS = Buffer.alloc(1024 * 1024)

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
