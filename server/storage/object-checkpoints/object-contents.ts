/**
 * Content that a conversation names by its hash, such as an image. Each is an object of its own. If it is stored again after some hours,
 * it gets a new name, so that the collector never deletes it. Finding it takes one list request, which the cache mostly avoids.
 */
import { createHash } from 'node:crypto'
import { BoundedMap } from '../../lib/bounded-map.ts'
import { isAppError } from '../../lib/errors.ts'
import { MAX_UPLOAD_AGE_MS } from '../file-heads.ts'
import { contentOf, type ObjectPage, type ObjectStore, type StoredObject } from '../objects/object-store.ts'
import type { ObjectCache } from './object-cache.ts'
import { objectName } from './object-names.ts'

const HASH = /^[0-9a-f]{64}$/
const KNOWN_KEYS = 10_000

export class ObjectContents {
  readonly #objects: ObjectStore
  readonly #cache: ObjectCache
  /** By folder and hash. */
  readonly #keys = new BoundedMap<string, string>(KNOWN_KEYS)

  constructor(objects: ObjectStore, cache: ObjectCache) {
    this.#objects = objects
    this.#cache = cache
  }

  async put(folder: string, bytes: Uint8Array): Promise<string> {
    const hash = createHash('sha256').update(bytes).digest('hex')
    const fresh = await this.#findFresh(folder, hash)
    if (fresh !== undefined) {
      this.#keys.set(folder + hash, fresh)
      return hash
    }
    const key = folder + objectName(hash, bytes.length, 'content')
    await this.#objects.put(key, contentOf(bytes))
    this.#keys.set(folder + hash, key)
    return hash
  }

  async get(folder: string, hash: string): Promise<Buffer | undefined> {
    if (!HASH.test(hash)) return undefined
    const known = this.#keys.get(folder + hash)
    const bytes = known === undefined ? undefined : await this.#cache.readAll(known).catch(unlessDamaged)
    if (bytes) return bytes
    // Another instance may have removed it, and stored it again under a new name.
    this.#keys.delete(folder + hash)
    const [key] = await this.#find(folder, hash)
    if (key === undefined) return undefined
    this.#keys.set(folder + hash, key)
    return this.#cache.readAll(key)
  }

  async remove(folder: string, hash: string): Promise<void> {
    if (!HASH.test(hash)) return
    const keys = await this.#find(folder, hash)
    this.#keys.delete(folder + hash)
    if (keys.length > 0) await this.#objects.remove(keys)
    for (const key of keys) await this.#cache.drop(key)
  }

  /** It may have been stored several times. */
  async #find(folder: string, hash: string): Promise<string[]> {
    return (await this.#list(folder, hash)).found.map(({ key }) => key)
  }

  /** One that the collector does not look at before the caller has named it. */
  async #findFresh(folder: string, hash: string): Promise<string | undefined> {
    const { found, now } = await this.#list(folder, hash)
    return found.find(({ modifiedAt }) => now - modifiedAt < MAX_UPLOAD_AGE_MS)?.key
  }

  async #list(folder: string, hash: string): Promise<ObjectPage<StoredObject>> {
    const page = await this.#objects.list(`${folder}${hash}.`)
    return { ...page, found: page.found.filter(({ key }) => key.endsWith('.content')) }
  }
}

function unlessDamaged(error: unknown): undefined {
  if (!isAppError(error, 'checkpoint_damaged')) throw error
}
