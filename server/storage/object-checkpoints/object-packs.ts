import { isAppError } from '../../lib/errors.ts'
import { contentDamaged } from '../checkpoints/checkpoint-errors.ts'
import type { Location } from '../checkpoints/checkpoint-state.ts'
import { readFully, writeFully } from '../checkpoints/file-io.ts'
import type { CopiedPacks, PackRange } from '../checkpoints/pack-set.ts'
import { checked, readContent, runsOf, type WantedContent } from '../checkpoints/read-content.ts'
import { type Draft, hashOf, type ObjectCache } from './object-cache.ts'
import { objectName } from './object-names.ts'

interface OpenPack extends Draft {
  bytes: number
}

/** A draft under the name of its object. */
export interface NamedPack {
  name: string
  bytes: number
  draft: Draft
}

/** The next content starts a new pack. A single content may be larger. */
const FULL_BYTES = 16 * 1024 * 1024

/** Writes new packs as drafts on the local disk, and reads packs through the cache. */
export class ObjectPacks implements CopiedPacks {
  readonly #cache: ObjectCache
  readonly #folder: string
  readonly #drafts = new Map<string, OpenPack>()
  #current: string | undefined

  constructor(cache: ObjectCache, folder: string) {
    this.#cache = cache
    this.#folder = folder
  }

  async append(content: Uint8Array): Promise<PackRange> {
    const [pack, draft] = await this.#writable()
    const offset = draft.bytes
    await this.#cache.withRoom(() => writeFully(draft.handle, content, offset))
    draft.bytes += content.length
    return { pack, offset, bytes: content.length }
  }

  async rewind({ pack, offset }: Pick<PackRange, 'pack' | 'offset'>): Promise<void> {
    const draft = this.#drafts.get(pack)
    if (!draft) return
    draft.bytes = offset
    await draft.handle.truncate(offset)
  }

  seal(): void {
    this.#current = undefined
  }

  /** Call this between contents, never within one. */
  sealIfFull(): void {
    const draft = this.#current === undefined ? undefined : this.#drafts.get(this.#current)
    if (draft && draft.bytes >= FULL_BYTES) this.seal()
  }

  /** Takes the drafts that `isUsed` accepts, with names of objects; the others are discarded. */
  async take(isUsed: (draft: string) => boolean): Promise<Map<string, NamedPack>> {
    const named = new Map<string, NamedPack>()
    this.seal()
    for (const [id, draft] of this.#drafts) {
      if (!isUsed(id)) continue
      named.set(id, { name: objectName(await hashOf(draft.path), draft.bytes, 'pack'), bytes: draft.bytes, draft })
      this.#drafts.delete(id)
    }
    await this.discard()
    return named
  }

  async discard(): Promise<void> {
    this.seal()
    const drafts = [...this.#drafts.values()]
    this.#drafts.clear()
    for (const draft of drafts) await this.#cache.discard(draft)
  }

  async range({ pack, offset, bytes: length }: PackRange): Promise<Buffer> {
    return this.#reading(pack, async (handle) => {
      const bytes = await readFully(handle, offset, length)
      if (bytes.length !== length) throw contentDamaged()
      return bytes
    })
  }

  async *read(hash: string, location: Location, chunkBytes: number): AsyncIterable<Uint8Array> {
    const handle = await this.#cache.open(this.#folder + location.pack)
    try {
      yield* readContent(handle, hash, location, chunkBytes)
    } catch (error) {
      await this.#dropDamaged(location.pack, error)
      throw error
    } finally {
      await handle.close()
    }
  }

  /** Whole contents without holes, in the order of `wanted`; undefined for others and for large ones. */
  async readSmall(wanted: readonly WantedContent[]): Promise<(Buffer | undefined)[]> {
    const found: (Buffer | undefined)[] = wanted.map(() => undefined)
    for (const { pack, offset, end, members } of runsOf(wanted)) {
      await this.#reading(pack, async (handle) => {
        const bytes = await readFully(handle, offset, end - offset)
        for (const at of members) found[at] = checked(wanted[at], bytes, offset)
      })
    }
    return found
  }

  async #reading<T>(pack: string, work: (handle: Draft['handle']) => Promise<T>): Promise<T> {
    const handle = await this.#cache.open(this.#folder + pack)
    try {
      return await work(handle)
    } catch (error) {
      await this.#dropDamaged(pack, error)
      throw error
    } finally {
      await handle.close()
    }
  }

  /** The local copy may have gone bad: the next attempt reads the object. */
  async #dropDamaged(pack: string, error: unknown): Promise<void> {
    if (isAppError(error, 'checkpoint_damaged')) await this.#cache.drop(this.#folder + pack)
  }

  async #writable(): Promise<[string, OpenPack]> {
    const known = this.#current === undefined ? undefined : this.#drafts.get(this.#current)
    if (this.#current !== undefined && known) return [this.#current, known]
    const draft = { ...(await this.#cache.draft()), bytes: 0 }
    this.#current = draft.path
    this.#drafts.set(draft.path, draft)
    return [draft.path, draft]
  }
}
