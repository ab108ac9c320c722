import type { Json, KeyValueStore } from '../../storage/key-value-store.ts'

export interface DefinitionCacheOptions<T> {
  keyValues: KeyValueStore
  space: string
  /** Maximum number of rows, including those of other gateways on the same store. */
  most: number
  write(value: T): Json
  /** Returns undefined for an unreadable value, which then counts as missing. */
  read(value: Json): T | undefined
}

const AT_ONCE = 100

/**
 * Caches results per tool definition. The key covers everything that the result depends on. The oldest entries are removed first.
 */
export class DefinitionCache<T> {
  readonly #options: DefinitionCacheOptions<T>
  /** When each entry was written. Kept apart, because the values are too large to list for this. */
  readonly #ledger: string

  constructor(options: DefinitionCacheOptions<T>) {
    this.#options = options
    this.#ledger = `${options.space}-written`
  }

  async load(keys: readonly string[]): Promise<Map<string, T>> {
    const { keyValues, space, read } = this.#options
    const found = new Map<string, T>()
    for (let from = 0; from < keys.length; from += AT_ONCE) {
      const some = keys.slice(from, from + AT_ONCE)
      const values = await Promise.all(some.map((key) => keyValues.get(space, key)))
      some.forEach((key, at) => {
        const value = read(values[at] ?? null)
        if (value !== undefined) found.set(key, value)
      })
    }
    return found
  }

  async save(key: string, value: T): Promise<void> {
    const { keyValues, space, write } = this.#options
    await keyValues.set(this.#ledger, key, Date.now())
    await keyValues.set(space, key, write(value))
  }

  /** Removes the oldest entries, but none that are in use here. */
  async prune(inUse: ReadonlySet<string>): Promise<void> {
    const { keyValues, space, most } = this.#options
    const rows = await keyValues.list(this.#ledger)
    const old = rows.filter(({ key }) => !inUse.has(key)).sort((a, b) => Number(a.value) - Number(b.value))
    for (const { key } of old.slice(0, Math.max(0, rows.length - most))) {
      await keyValues.remove(space, key)
      await keyValues.remove(this.#ledger, key)
    }
  }
}
