import { createHash } from 'node:crypto'
import { checkpointFull } from './checkpoint-errors.ts'
import type { ContentSize, Location } from './checkpoint-state.ts'
import { HoleTable } from './hole-table.ts'
import type { PackRange, PackWriter } from './pack-set.ts'

type Added = { hash: string; size: number }

/** Content in its stored form, and its length including holes. */
interface Packed {
  bytes: Buffer
  length: number
}

const SMALL_BYTES = 256 * 1024
const MAX_MEMORY_BYTES = 4 * 1024 * 1024

/** Content for the next commit. Small pieces are in memory until then; large ones are already in the pack. */
export class PendingBlobs {
  readonly #packs: PackWriter
  readonly #maxBytes: number
  readonly #memory = new Map<string, Packed>()
  readonly #written = new Map<string, Location>()
  #memoryBytes = 0
  #bytes = 0

  constructor(packs: PackWriter, maxBytes: number) {
    this.#packs = packs
    this.#maxBytes = maxBytes
  }

  sizeOf(hash: string): ContentSize | undefined {
    const packed = this.#memory.get(hash)
    return packed ? { length: packed.length, stored: packed.bytes.length } : this.#written.get(hash)
  }

  /** `isStored` tells which content the checkpoint already has; that is not added again. */
  async add(
    content: Uint8Array | AsyncIterable<Uint8Array>,
    isStored: (hash: string) => boolean
  ): Promise<{ hash: string; size: number }> {
    const isKnown = (hash: string) => isStored(hash) || this.sizeOf(hash) !== undefined
    return content instanceof Uint8Array
      ? await this.#addBytes(content, isKnown)
      : await this.#addStream(content, isKnown)
  }

  /** Writes the content in memory that `wanted` accepts, and returns the locations. Not durable yet. */
  async write(wanted: (hash: string) => boolean): Promise<Map<string, Location>> {
    const located = new Map([...this.#written].filter(([hash]) => wanted(hash)))
    for (const [hash, location] of await this.#writeMemory(wanted)) located.set(hash, location)
    return located
  }

  clear(): void {
    this.#memory.clear()
    this.#written.clear()
    this.#memoryBytes = 0
    this.#bytes = 0
  }

  async #addBytes(content: Uint8Array, isKnown: (hash: string) => boolean): Promise<Added> {
    const size = content.length
    const hash = createHash('sha256').update(content).digest('hex')
    if (isKnown(hash)) return { hash, size }
    const table = new HoleTable()
    const packed = Buffer.concat([table.take(content), table.encode()])
    this.#assertRoom(packed.length)
    if (packed.length > SMALL_BYTES) this.#locate(hash, size, await this.#packs.append(packed))
    else await this.#remember(hash, { bytes: packed, length: size })
    this.#bytes += packed.length
    return { hash, size }
  }

  async #addStream(stream: AsyncIterable<Uint8Array>, isKnown: (hash: string) => boolean): Promise<Added> {
    const digest = createHash('sha256')
    const table = new HoleTable()
    const start: Uint8Array[] = []
    let size = 0
    let stored = 0
    let range: PackRange | undefined
    const store = async (bytes: Uint8Array) => {
      stored += bytes.length
      this.#assertRoom(stored)
      if (range) return void (await this.#packs.append(bytes))
      // Copied, because the caller may reuse its buffer.
      start.push(Buffer.from(bytes))
      if (stored > SMALL_BYTES) range = await this.#packs.append(Buffer.concat(start.splice(0)))
    }
    try {
      for await (const chunk of stream) {
        size += chunk.length
        digest.update(chunk)
        const bytes = table.take(chunk)
        if (bytes.length > 0) await store(bytes)
      }
      const holes = table.encode()
      if (holes.length > 0) await store(holes)
    } catch (error) {
      if (range) await this.#packs.rewind(range)
      throw error
    }
    const hash = digest.digest('hex')
    if (isKnown(hash)) {
      if (range) await this.#packs.rewind(range)
      return { hash, size }
    }
    if (range) this.#locate(hash, size, { ...range, bytes: stored })
    else await this.#remember(hash, { bytes: Buffer.concat(start), length: size })
    this.#bytes += stored
    return { hash, size }
  }

  #locate(hash: string, length: number, { pack, offset, bytes }: PackRange): void {
    this.#written.set(hash, { pack, offset, length, stored: bytes })
  }

  async #remember(hash: string, content: Packed): Promise<void> {
    if (this.#memoryBytes + content.bytes.length > MAX_MEMORY_BYTES) {
      for (const [written, location] of await this.#writeMemory(() => true)) this.#written.set(written, location)
    }
    this.#memory.set(hash, content)
    this.#memoryBytes += content.bytes.length
  }

  async #writeMemory(wanted: (hash: string) => boolean): Promise<[string, Location][]> {
    const pieces = [...this.#memory].filter(([hash]) => wanted(hash))
    this.#memory.clear()
    this.#memoryBytes = 0
    if (pieces.length === 0) return []
    const { pack, offset } = await this.#packs.append(Buffer.concat(pieces.map(([, { bytes }]) => bytes)))
    let next = offset
    return pieces.map(([hash, { bytes, length }]) => {
      const location = { pack, offset: next, length, stored: bytes.length }
      next += bytes.length
      return [hash, location]
    })
  }

  #assertRoom(size: number): void {
    if (this.#bytes + size > this.#maxBytes) throw checkpointFull('content', this.#maxBytes)
  }
}
