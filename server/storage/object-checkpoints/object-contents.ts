/**
 * Content that a conversation names by its hash, such as an image. Each is an object of its own. If it is stored again after some hours,
 * it gets a new name, so that the collector never deletes it. Finding it takes one list request, which the cache mostly avoids.
 */
import { createHash } from 'node:crypto'
import { BoundedMap } from '../../lib/bounded-map.ts'
import { isAppError } from '../../lib/errors.ts'
import { KeyedLock } from '../../lib/waiting/keyed-lock.ts'
import { MAX_UPLOAD_AGE_MS } from '../file-heads.ts'
import { contentOf, type ObjectPage, type ObjectStore, type StoredObject } from '../objects/object-store.ts'
import type { ContentSums } from './content-sums.ts'
import type { ObjectCache } from './object-cache.ts'
import { objectName } from './object-names.ts'

const HASH = /^[0-9a-f]{64}$/
const KNOWN_KEYS = 10_000

export class ObjectContents {
  readonly #objects: ObjectStore
  readonly #cache: ObjectCache
  readonly #sums: ContentSums
  readonly #lock = new KeyedLock()
  /** By folder and hash. */
  readonly #keys = new BoundedMap<string, string>(KNOWN_KEYS)

  constructor(objects: ObjectStore, cache: ObjectCache, sums: ContentSums) {
    this.#objects = objects
    this.#cache = cache
    this.#sums = sums
  }

  async put(folder: string, bytes: Uint8Array): Promise<string> {
    const hash = createHash('sha256').update(bytes).digest('hex')
    await this.#lock.run(folder + hash, () => this.#store(folder, hash, bytes))
    return hash
  }

  async #store(folder: string, hash: string, bytes: Uint8Array): Promise<void> {
    const { found, now } = await this.#list(folder, hash)
    // One that the collector does not look at before the caller has named it.
    const fresh = found.find(({ modifiedAt }) => now - modifiedAt < MAX_UPLOAD_AGE_MS)?.key
    const key = fresh ?? folder + objectName(hash, bytes.length, 'content')
    if (fresh === undefined) await this.#objects.put(key, contentOf(bytes))
    if (found.length === 0) await this.#sums.add(folder, bytes.length)
    this.#keys.set(folder + hash, key)
  }

  async get(folder: string, hash: string): Promise<Buffer | undefined> {
    if (!HASH.test(hash)) return undefined
    const known = this.#keys.get(folder + hash)
    const bytes = known === undefined ? undefined : await this.#cache.readAll(known).catch(unlessDamaged)
    if (bytes) return bytes
    // Another instance may have removed it, and stored it again under a new name.
    this.#keys.delete(folder + hash)
    const key = (await this.#list(folder, hash)).found[0]?.key
    if (key === undefined) return undefined
    this.#keys.set(folder + hash, key)
    return this.#cache.readAll(key)
  }

  /** Only frees the local disk: another instance may be about to name it. */
  async forget(folder: string, hash: string): Promise<void> {
    const key = this.#keys.get(folder + hash)
    if (key !== undefined) await this.#cache.drop(key)
  }

  async #list(folder: string, hash: string): Promise<ObjectPage<StoredObject>> {
    const page = await this.#objects.list(`${folder}${hash}.`)
    return { ...page, found: page.found.filter(({ key }) => key.endsWith('.content')) }
  }
}

function unlessDamaged(error: unknown): undefined {
  if (!isAppError(error, 'checkpoint_damaged')) throw error
}
