/**
 * Content that a conversation names by its hash, such as an image. Each is an object of its own, under a new name each time, so that
 * the collector never deletes one that was stored again. Finding it takes one list request, which the cache mostly avoids.
 */
import { createHash } from 'node:crypto'
import { BoundedMap } from '../../lib/bounded-map.ts'
import { contentOf, type ObjectStore } from '../objects/object-store.ts'
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
    const key = folder + objectName(hash, bytes.length, 'content')
    await this.#objects.put(key, contentOf(bytes))
    this.#keys.set(folder + hash, key)
    return hash
  }

  async get(folder: string, hash: string): Promise<Buffer | undefined> {
    if (!HASH.test(hash)) return undefined
    const key = this.#keys.get(folder + hash) ?? (await this.#find(folder, hash))
    if (key === undefined) return undefined
    this.#keys.set(folder + hash, key)
    return this.#cache.readAll(key)
  }

  async #find(folder: string, hash: string): Promise<string | undefined> {
    const { found } = await this.#objects.list(`${folder}${hash}.`)
    return found.find(({ key }) => key.endsWith('.content'))?.key
  }
}
