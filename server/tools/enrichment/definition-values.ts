import { messageOf } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import type { Json, KeyValueStore } from '../../storage/key-value-store.ts'
import type { KnownTool } from '../tool-index.ts'

export interface DefinitionValuesOptions<T> {
  keyValues: KeyValueStore
  space: string
  tools(): KnownTool[]
  /** Tools with the same id have the same value; by default the hash of the definition. */
  idOf?(known: KnownTool): string
  /** The key in the store. It covers everything that the value depends on. */
  keyOf?(id: string): string
  write(value: T): Json
  /** Returns undefined for an unreadable value, which then counts as missing. */
  read(value: Json): T | undefined
  /** Computes the values of these tools, and saves each of them. */
  compute(missing: KnownTool[], signal: AbortSignal): Promise<void>
  /** Called with the tools whose values were found in the store. */
  onRestored?(tools: KnownTool[]): void
  warn(error: unknown): void
  /** Maximum number of stored values, including those of other gateways on the same store. */
  most?: number
}

const MAX_STORED = 10_000
const PAUSE_MS = 60_000
const AT_ONCE = 100

/**
 * One value per tool definition, in memory and in the store. Missing values are computed in the background, one run at a time. After a
 * failure it pauses; the first wake-up after the pause starts it again.
 */
export class DefinitionValues<T> {
  readonly #options: DefinitionValuesOptions<T>
  readonly #values = new Map<string, T>()
  readonly #end = new AbortController()
  #running: Promise<void> | undefined
  #again = false
  #restsUntil = 0

  constructor(options: DefinitionValuesOptions<T>) {
    this.#options = options
  }

  get(id: string): T | undefined {
    return this.#values.get(id)
  }

  /** Loads what is in the store. */
  async restore(): Promise<void> {
    const { keyValues, space, read, onRestored } = this.#options
    const missing = this.#missing()
    const ids = [...new Set(missing.map((known) => this.#idOf(known)))]
    for (let from = 0; from < ids.length; from += AT_ONCE) {
      const load = async (id: string) => {
        const value = read((await keyValues.get(space, this.#keyOf(id))) ?? null)
        if (value !== undefined) this.#values.set(id, value)
      }
      await Promise.all(ids.slice(from, from + AT_ONCE).map(load))
    }
    onRestored?.(missing.filter((known) => this.#values.has(this.#idOf(known))))
  }

  /** Computes what is missing. */
  wake(): void {
    if (this.#missing().length === 0) return
    this.#again = true
    if (this.#running || this.#end.signal.aborted || Date.now() < this.#restsUntil) return
    this.#running = this.#run().finally(() => {
      this.#running = undefined
    })
  }

  async save(id: string, value: T): Promise<void> {
    const { keyValues, space, write } = this.#options
    this.#values.set(id, value)
    await keyValues.set(this.#ledger, this.#keyOf(id), Date.now())
    await keyValues.set(space, this.#keyOf(id), write(value))
  }

  async close(): Promise<void> {
    this.#end.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    const { signal } = this.#end
    try {
      while (this.#again && !signal.aborted) {
        this.#again = false
        await this.#complete(signal)
      }
    } catch (error) {
      if (signal.aborted) return
      this.#restsUntil = Date.now() + PAUSE_MS
      this.#options.warn(error)
    }
  }

  async #complete(signal: AbortSignal): Promise<void> {
    await this.restore()
    const missing = this.#missing()
    await this.#options.compute(missing, signal)
    const inUse = new Set(this.#options.tools().map((known) => this.#idOf(known)))
    for (const id of this.#values.keys()) if (!inUse.has(id)) this.#values.delete(id)
    if (missing.length > 0) await this.#prune(new Set([...inUse].map((id) => this.#keyOf(id))))
  }

  /** Removes the oldest rows of the store, but none that are in use here. */
  async #prune(inUse: ReadonlySet<string>): Promise<void> {
    const { keyValues, space, most = MAX_STORED } = this.#options
    const rows = await keyValues.list(this.#ledger)
    const old = rows.filter(({ key }) => !inUse.has(key)).sort((a, b) => Number(a.value) - Number(b.value))
    for (const { key } of old.slice(0, Math.max(0, rows.length - most))) {
      await keyValues.remove(space, key)
      await keyValues.remove(this.#ledger, key)
    }
  }

  #missing(): KnownTool[] {
    return this.#options.tools().filter((known) => !this.#values.has(this.#idOf(known)))
  }

  #idOf(known: KnownTool): string {
    return this.#options.idOf?.(known) ?? known.tool.hash
  }

  #keyOf(id: string): string {
    return this.#options.keyOf?.(id) ?? id
  }

  /** The space with the time when each row was written: listing the times must not read the large values. */
  get #ledger(): string {
    return `${this.#options.space}-written`
  }
}

/** Logs a failure at most once a minute: what fails once tends to fail with every request. */
export function rareWarning(logger: Logger, what: string): (error: unknown) => void {
  let silentUntil = 0
  return (error) => {
    if (Date.now() < silentUntil) return
    silentUntil = Date.now() + PAUSE_MS
    logger.warn(`${what}: ${messageOf(error)}`)
  }
}
