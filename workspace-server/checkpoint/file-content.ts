import { createHash } from 'node:crypto'
import { closeSync, readSync, type Stats } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { readRange } from '../files/read-range.ts'
import type { RawPath } from './raw-path.ts'
import type { RawTree } from './raw-tree.ts'

/** Files up to this size are sent together with their entries. */
const MAX_INLINE_BYTES = 256 * 1024
export const MAX_FETCH_BYTES = 2 * 1024 * 1024
const CHUNK_BYTES = 1024 * 1024
/** The kernel's file times may lag behind our clock by a tick or two. */
const RACY_MS = 100

export interface FileContent {
  hash: string
  size: number
  /** Only for small files that are not sparse. */
  data: Buffer | null
  stats: Stats
  /** The file changed so recently that another change could leave the same times. */
  racy: boolean
}

const chunk = Buffer.allocUnsafe(CHUNK_BYTES)

/** Reads a whole file once. What is appended meanwhile is left for the next scan. */
export async function readContent(tree: RawTree, raw: RawPath): Promise<FileContent | 'denied' | 'gone'> {
  const startedAt = Date.now()
  const opened = tree.open(raw)
  if (typeof opened === 'string') return opened
  const { fd, stats } = opened
  try {
    const racy = stats.ctimeMs >= startedAt - RACY_MS
    if (stats.size > MAX_INLINE_BYTES || isSparse(stats))
      return { ...(await hashLarge(fd, stats.size)), data: null, stats, racy }
    const data = readRange(fd, 0, stats.size)
    return { hash: createHash('sha256').update(data).digest('hex'), size: data.length, data, stats, racy }
  } finally {
    closeSync(fd)
  }
}

/** A sparse file consists mostly of holes and is fetched without them. A block of `stats` has 512 bytes. */
function isSparse({ size, blocks }: Stats): boolean {
  return size > 8192 && blocks * 512 < size / 2
}

async function hashLarge(fd: number, wanted: number): Promise<{ hash: string; size: number }> {
  const hash = createHash('sha256')
  let size = 0
  while (size < wanted) {
    // The buffer is shared, so fill and use it without waiting in between.
    const read = readSync(fd, chunk, 0, Math.min(CHUNK_BYTES, wanted - size), size)
    if (read === 0) break
    hash.update(chunk.subarray(0, read))
    size += read
    if (size % (8 * CHUNK_BYTES) === 0) await nextTurn()
  }
  return { hash: hash.digest('hex'), size }
}
