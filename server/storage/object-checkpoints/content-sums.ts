/**
 * How many bytes of content the conversation of each session has, because measuring it takes list requests. A crash can leave a sum
 * wrong; the collector corrects it.
 */
import type { Json, KeyValueStore } from '../key-value-store.ts'

export type SumStore = Pick<KeyValueStore, 'get' | 'add' | 'replace' | 'remove' | 'list'>

const SPACE = 'content-bytes'

export class ContentSums {
  readonly #keyValues: SumStore

  constructor(keyValues: SumStore) {
    this.#keyValues = keyValues
  }

  async add(folder: string, bytes: number): Promise<void> {
    for (let isDone = false; !isDone; ) {
      const known = await this.#keyValues.get(SPACE, folder)
      isDone = await this.#replace(folder, known, toBytes(known) + bytes)
    }
  }

  async all(): Promise<Map<string, number>> {
    const rows = await this.#keyValues.list(SPACE)
    return new Map(rows.map(({ key, value }) => [key, toBytes(value)]))
  }

  /** Does nothing if content was added meanwhile. */
  async correct(folder: string, known: number | undefined, bytes: number): Promise<void> {
    if (bytes !== (known ?? 0)) await this.#replace(folder, known ?? null, bytes)
  }

  remove(folder: string): Promise<void> {
    return this.#keyValues.remove(SPACE, folder)
  }

  #replace(folder: string, known: Json, bytes: number): Promise<boolean> {
    if (known === null) return this.#keyValues.add(SPACE, folder, bytes)
    return this.#keyValues.replace(SPACE, folder, known, bytes)
  }
}

function toBytes(value: Json): number {
  return typeof value === 'number' ? value : 0
}
