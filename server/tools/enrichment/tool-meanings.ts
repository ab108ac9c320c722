/**
 * Compares the meaning of a request with each tool's, by embeddings. Tool vectors are computed in the background, once per
 * definition, and kept in the store. A request waits only briefly for its own vector. Invariant: a failure here never fails a
 * call.
 */

import { createHash } from 'node:crypto'
import { BoundedMap } from '../../lib/bounded-map.ts'
import type { Logger } from '../../lib/logger.ts'
import { withDeadline } from '../../lib/waiting/deadline.ts'
import { BATCH, type Embedder } from '../../models/embedder.ts'
import type { Similarities } from '../../routing/port.ts'
import { toolKey } from '../../routing/tool-corpus.ts'
import type { Json, KeyValueStore } from '../../storage/key-value-store.ts'
import type { KnownTool } from '../tool-index.ts'
import { BackgroundJob, rareWarning } from './background-job.ts'
import { DefinitionCache } from './definition-cache.ts'

export interface ToolMeaningsOptions {
  embedder: Embedder
  keyValues: KeyValueStore
  tools(): KnownTool[]
  logger: Logger
  now?: () => number
}

const MAX_TOOLS = 5000
const MAX_STORED = 10_000
const MAX_TEXT = 1500
const TOOLS_MS = 30_000
const REQUEST_MS = 800
/** How long a provider that failed is not asked again. */
const REST_MS = 10_000
const MAX_REQUESTS = 200
/** Minimum share of tools with a vector. With fewer, the right tool may be among those without one. */
const MIN_SHARE = 0.9

export class ToolMeanings {
  readonly #options: ToolMeaningsOptions
  readonly #cache: DefinitionCache<Float32Array>
  readonly #job: BackgroundJob
  readonly #warn: (error: unknown) => void
  /** By definition. */
  readonly #vectors = new BoundedMap<string, Float32Array>(MAX_REQUESTS)
  /** Vectors of the latest requests. */
  readonly #requests = new BoundedMap<string, Float32Array>(MAX_REQUESTS)
  #restsUntil = 0

  constructor(options: ToolMeaningsOptions) {
    this.#options = options
    const { keyValues, logger, now } = options
    this.#cache = new DefinitionCache({ keyValues, space: 'tool-vectors', most: MAX_STORED, write, read })
    this.#warn = rareWarning(logger, 'Routing without embeddings', now)
    this.#job = new BackgroundJob({
      job: (signal) => this.#complete(signal),
      warn: this.#warn,
      ...(now ? { now } : {})
    })
  }

  /** Loads what is in the store. */
  async restore(): Promise<void> {
    const missing = [...this.#missing().keys()]
    const found = await this.#cache.load(missing.map((hash) => this.#keyOf(hash)))
    for (const hash of missing) {
      const vector = found.get(this.#keyOf(hash))
      if (vector) this.#vectors.set(hash, vector)
    }
  }

  wake(): void {
    if (this.#missing().size > 0) this.#job.wake()
  }

  close(): Promise<void> {
    return this.#job.close()
  }

  /** Resolves to undefined if nothing can be compared. */
  async similarities(request: string, signal: AbortSignal): Promise<Similarities | undefined> {
    const tools = this.#options.tools()
    const known = tools.flatMap(({ server, tool }) => {
      const vector = this.#vectors.get(tool.hash)
      return vector ? [{ key: toolKey(server, tool.name), vector }] : []
    })
    if (known.length < 2 || known.length < MIN_SHARE * Math.min(tools.length, MAX_TOOLS)) return undefined
    const asked = await this.#meaningOf(request.slice(0, MAX_TEXT), signal)
    return asked && new Map(known.map(({ key, vector }) => [key, cosine(asked, vector)]))
  }

  async #meaningOf(request: string, signal: AbortSignal): Promise<Float32Array | undefined> {
    const { embedder } = this.#options
    const now = this.#options.now ?? Date.now
    const kept = this.#requests.get(request)
    if (!kept && now() < this.#restsUntil) return undefined
    try {
      const what = { what: 'the embedding of a request', ms: REQUEST_MS, signal }
      const vector = kept ?? (await withDeadline(what, (inner) => embedder.embed([request], inner)))[0]
      if (vector) this.#requests.set(request, vector)
      return vector
    } catch (error) {
      if (signal.aborted) return undefined
      this.#restsUntil = now() + REST_MS
      this.#warn(error)
      return undefined
    }
  }

  async #complete(signal: AbortSignal): Promise<void> {
    await this.restore()
    const missing = [...this.#missing()]
    for (let from = 0; from < missing.length && !signal.aborted; from += BATCH) {
      const some = missing.slice(from, from + BATCH)
      const what = { what: 'the embeddings of tools', ms: TOOLS_MS, signal }
      const texts = some.map(([, text]) => text)
      const vectors = await withDeadline(what, (inner) => this.#options.embedder.embed(texts, inner))
      for (const [at, [hash]] of some.entries()) {
        const vector = vectors[at]
        if (!vector) continue
        this.#vectors.set(hash, vector)
        await this.#cache.save(this.#keyOf(hash), vector)
      }
    }
    const inUse = new Set(this.#options.tools().map(({ tool }) => tool.hash))
    for (const hash of this.#vectors.keys()) if (!inUse.has(hash)) this.#vectors.delete(hash)
    if (missing.length > 0) await this.#cache.prune(new Set([...inUse].map((hash) => this.#keyOf(hash))))
  }

  /** Texts of the tools without a vector, by definition. */
  #missing(): Map<string, string> {
    const missing = new Map<string, string>()
    for (const { tool } of this.#options.tools().slice(0, MAX_TOOLS)) {
      if (!this.#vectors.has(tool.hash)) missing.set(tool.hash, textOf(tool))
    }
    return missing
  }

  #keyOf(hash: string): string {
    return createHash('sha256').update(`${this.#options.embedder.model}\n${hash}`).digest('hex')
  }
}

/** Only what the definition's hash covers. */
function textOf({ name, description }: KnownTool['tool']): string {
  return `${name.replace(/[_-]+|(?<=[a-z])(?=[A-Z])/g, ' ')}: ${description}`.slice(0, MAX_TEXT)
}

/** Both vectors have length 1. */
function cosine(a: Float32Array, b: Float32Array): number {
  if (a.length !== b.length) return Number.NaN
  let sum = 0
  for (let at = 0; at < a.length; at += 1) sum += (a[at] ?? 0) * (b[at] ?? 0)
  return sum
}

function write(vector: Float32Array): Json {
  return Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString('base64')
}

function read(value: Json): Float32Array | undefined {
  if (typeof value !== 'string') return undefined
  const bytes = Buffer.from(value, 'base64')
  if (bytes.length === 0 || bytes.length % Float32Array.BYTES_PER_ELEMENT !== 0) return undefined
  // Copied, because a small buffer is a view of a shared one at any offset.
  const vector = new Float32Array(new Uint8Array(bytes).buffer)
  return vector.every(Number.isFinite) ? vector : undefined
}
