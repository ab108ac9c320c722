/**
 * Compares the meaning of a request with each tool's, by embeddings. Tool vectors are computed in the background, once per
 * definition, and kept in the store. A request waits only briefly for its own vector. Invariant: a failure here never fails a
 * call.
 */

import { createHash } from 'node:crypto'
import { BoundedMap } from '../../lib/bounded-map.ts'
import { isAppError } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import { withDeadline } from '../../lib/waiting/deadline.ts'
import { BATCH, type Embedder } from '../../models/embedder.ts'
import type { Similarities } from '../../routing/port.ts'
import { toolKey } from '../../routing/tool-corpus.ts'
import type { Json, KeyValueStore } from '../../storage/key-value-store.ts'
import type { KnownTool } from '../tool-index.ts'
import { DefinitionValues, rareWarning } from './definition-values.ts'
import { isMostlyLatin, requestTexts, rescale, similarity, toolText } from './meaning-texts.ts'

export interface ToolMeaningsOptions {
  embedder: Embedder
  keyValues: KeyValueStore
  tools(): KnownTool[]
  logger: Logger
}

const MAX_TOOLS = 20_000
const MAX_STORED = 40_000
const TOOLS_MS = 30_000
const REQUEST_MS = 800
/** A model on this machine may have to be loaded first. */
const LOCAL_REQUEST_MS = 1500
/** How long a provider that failed is not asked again. */
const REST_MS = 10_000
const MAX_REQUESTS = 200
/** Minimum share of tools with a vector. With fewer, the right tool may be among those without one. */
const MIN_SHARE = 0.9

export class ToolMeanings {
  readonly #options: ToolMeaningsOptions
  readonly #vectors: DefinitionValues<Float32Array>
  readonly #warn: (error: unknown) => void
  /** Tools that the model has failed on come last, so that one of them does not keep the others from their vectors. */
  readonly #failed = new Set<string>()
  /** Vectors of the latest requests. */
  readonly #requests = new BoundedMap<string, Float32Array[]>(MAX_REQUESTS)
  #restsUntil = 0

  constructor(options: ToolMeaningsOptions) {
    this.#options = options
    const { keyValues, embedder, logger } = options
    this.#warn = rareWarning(logger, 'Routing without embeddings')
    this.#vectors = new DefinitionValues({
      ...{ keyValues, write, read, idOf, warn: this.#warn, space: 'tool-vectors', most: MAX_STORED },
      tools: () => options.tools().slice(0, MAX_TOOLS),
      keyOf: (id) => createHash('sha256').update(`${embedder.model}\n${id}`).digest('hex'),
      compute: (missing, signal) => this.#embed(missing, signal)
    })
  }

  restore(): Promise<void> {
    return this.#vectors.restore()
  }

  wake(): void {
    this.#vectors.wake()
  }

  async close(): Promise<void> {
    const stopped = this.#vectors.close()
    await this.#options.embedder.close?.()
    await stopped
  }

  /** How many of these tools have a vector. */
  done(tools: readonly KnownTool[]): number {
    return tools.filter((known) => this.#vectors.get(idOf(known)) !== undefined).length
  }

  /** Resolves to undefined if nothing can be compared. */
  async similarities(request: string, signal: AbortSignal): Promise<Similarities | undefined> {
    if (this.#options.embedder.isLocal && !isMostlyLatin(request)) return undefined
    const tools = this.#options.tools()
    const known = tools.flatMap(({ server, tool }) => {
      const vector = this.#vectors.get(idOf({ server, tool }))
      return vector ? [{ key: toolKey(server, tool.name), vector }] : []
    })
    if (known.length < 2 || known.length < MIN_SHARE * Math.min(tools.length, MAX_TOOLS)) return undefined
    const asked = await this.#meaningOf(request, signal)
    if (!asked) return undefined
    const cosines = known.map(({ vector }) => similarity(asked, vector))
    const values = this.#options.embedder.isLocal ? cosines : rescale(cosines)
    return new Map(known.map(({ key }, at) => [key, values[at] ?? 0]))
  }

  async #meaningOf(request: string, signal: AbortSignal): Promise<Float32Array[] | undefined> {
    const { embedder } = this.#options
    const texts = requestTexts(request)
    const key = texts.join('\n')
    const kept = this.#requests.get(key)
    if (!kept && Date.now() < this.#restsUntil) return undefined
    try {
      const ms = embedder.isLocal ? LOCAL_REQUEST_MS : REQUEST_MS
      const what = { what: 'the embedding of a request', ms, signal }
      const vectors = kept ?? (await withDeadline(what, (inner) => embedder.embed(texts, inner)))
      this.#requests.set(key, vectors)
      return vectors
    } catch (error) {
      // A local model that is late is still loading, or busy with the tools.
      if (signal.aborted || (embedder.isLocal && isAppError(error) && error.kind === 'timeout')) return undefined
      this.#restsUntil = Date.now() + REST_MS
      this.#warn(error)
      return undefined
    }
  }

  async #embed(missing: KnownTool[], signal: AbortSignal): Promise<void> {
    const { embedder } = this.#options
    const { batch = BATCH } = embedder
    const all = [...new Map(missing.map((known) => [idOf(known), toolText(known.server, known.tool)]))]
    const texts = all.sort(([a], [b]) => Number(this.#failed.has(a)) - Number(this.#failed.has(b)))
    for (let from = 0; from < texts.length && !signal.aborted; from += batch) {
      const some = texts.slice(from, from + batch)
      const what = { what: 'the embeddings of tools', ms: TOOLS_MS, signal }
      const asked = some.map(([, text]) => text)
      const vectors = await withDeadline(what, (inner) => embedder.embed(asked, inner)).catch((error) => {
        for (const [id] of some) this.#failed.add(id)
        throw error
      })
      for (const [at, [id]] of some.entries()) if (vectors[at]) await this.#vectors.save(id, vectors[at])
    }
  }
}

/** Covers everything that `toolText` reads. */
function idOf({ server, tool }: KnownTool): string {
  return `${server}\n${tool.hash}`
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
