import { createHash } from 'node:crypto'
import { checkpointFull } from './checkpoint-errors.ts'
import type { Location } from './checkpoint-state.ts'
import type { PackSet } from './pack-set.ts'

type Added = { hash: string; size: number }

const SMALL_BYTES = 256 * 1024
const MAX_MEMORY_BYTES = 4 * 1024 * 1024

/** Content handed over for the next commit: small pieces in memory, to be written at once, large ones already in the pack. */
export class PendingBlobs {
  readonly #packs: PackSet
  readonly #maxBytes: number
  readonly #memory = new Map<string, Buffer>()
  readonly #written = new Map<string, Location>()
  #memoryBytes = 0
  #bytes = 0

  constructor(packs: PackSet, maxBytes: number) {
    this.#packs = packs
    this.#maxBytes = maxBytes
  }

  lengthOf(hash: string): number | undefined {
    return this.#memory.get(hash)?.length ?? this.#written.get(hash)?.length
  }

  /** `isStored`: content that the checkpoint has already is not taken again. */
  async add(
    content: Uint8Array | AsyncIterable<Uint8Array>,
    isStored: (hash: string) => boolean
  ): Promise<{ hash: string; size: number }> {
    const isKnown = (hash: string) => isStored(hash) || this.lengthOf(hash) !== undefined
    return content instanceof Uint8Array
      ? await this.#addBytes(content, isKnown)
      : await this.#addStream(content, isKnown)
  }

  /** Writes what is in memory, of it only what `wanted` names, and says where these contents are. Not durable yet. */
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
    this.#assertRoom(size)
    if (size > SMALL_BYTES) this.#written.set(hash, await this.#packs.append(content))
    else await this.#remember(hash, Buffer.from(content))
    this.#bytes += size
    return { hash, size }
  }

  async #addStream(stream: AsyncIterable<Uint8Array>, isKnown: (hash: string) => boolean): Promise<Added> {
    const digest = createHash('sha256')
    const start: Buffer[] = []
    let size = 0
    let location: Location | undefined
    try {
      for await (const chunk of stream) {
        size += chunk.length
        this.#assertRoom(size)
        digest.update(chunk)
        if (!location) start.push(Buffer.from(chunk))
        if (location) await this.#packs.append(chunk)
        else if (size > SMALL_BYTES) location = await this.#packs.append(Buffer.concat(start.splice(0)))
      }
    } catch (error) {
      if (location) await this.#packs.rewind(location)
      throw error
    }
    const hash = digest.digest('hex')
    if (isKnown(hash)) {
      if (location) await this.#packs.rewind(location)
      return { hash, size }
    }
    if (location) this.#written.set(hash, { ...location, length: size })
    else await this.#remember(hash, Buffer.concat(start))
    this.#bytes += size
    return { hash, size }
  }

  async #remember(hash: string, content: Buffer): Promise<void> {
    if (this.#memoryBytes + content.length > MAX_MEMORY_BYTES) {
      for (const [written, location] of await this.#writeMemory(() => true)) this.#written.set(written, location)
    }
    this.#memory.set(hash, content)
    this.#memoryBytes += content.length
  }

  async #writeMemory(wanted: (hash: string) => boolean): Promise<[string, Location][]> {
    const pieces = [...this.#memory].filter(([hash]) => wanted(hash))
    this.#memory.clear()
    this.#memoryBytes = 0
    if (pieces.length === 0) return []
    const { pack, offset } = await this.#packs.append(Buffer.concat(pieces.map(([, content]) => content)))
    let next = offset
    return pieces.map(([hash, { length }]) => {
      const location = { pack, offset: next, length }
      next += length
      return [hash, location]
    })
  }

  #assertRoom(size: number): void {
    if (this.#bytes + size > this.#maxBytes) throw checkpointFull(this.#maxBytes)
  }
}
