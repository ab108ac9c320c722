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
import { DefinitionValues, rareWarning } from './definition-values.ts'

export interface ToolMeaningsOptions {
  embedder: Embedder
  keyValues: KeyValueStore
  tools(): KnownTool[]
  logger: Logger
}

const MAX_TOOLS = 5000
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
  readonly #vectors: DefinitionValues<Float32Array>
  readonly #warn: (error: unknown) => void
  /** Vectors of the latest requests. */
  readonly #requests = new BoundedMap<string, Float32Array>(MAX_REQUESTS)
  #restsUntil = 0

  constructor(options: ToolMeaningsOptions) {
    this.#options = options
    const { keyValues, embedder, logger } = options
    this.#warn = rareWarning(logger, 'Routing without embeddings')
    this.#vectors = new DefinitionValues({
      ...{ keyValues, write, read, warn: this.#warn, space: 'tool-vectors' },
      tools: () => options.tools().slice(0, MAX_TOOLS),
      keyOf: (hash) => createHash('sha256').update(`${embedder.model}\n${hash}`).digest('hex'),
      compute: (missing, signal) => this.#embed(missing, signal)
    })
  }

  restore(): Promise<void> {
    return this.#vectors.restore()
  }

  wake(): void {
    this.#vectors.wake()
  }

  close(): Promise<void> {
    return this.#vectors.close()
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
    const kept = this.#requests.get(request)
    if (!kept && Date.now() < this.#restsUntil) return undefined
    try {
      const what = { what: 'the embedding of a request', ms: REQUEST_MS, signal }
      const vector = kept ?? (await withDeadline(what, (inner) => embedder.embed([request], inner)))[0]
      if (vector) this.#requests.set(request, vector)
      return vector
    } catch (error) {
      if (signal.aborted) return undefined
      this.#restsUntil = Date.now() + REST_MS
      this.#warn(error)
      return undefined
    }
  }

  async #embed(missing: KnownTool[], signal: AbortSignal): Promise<void> {
    const texts = [...new Map(missing.map(({ tool }) => [tool.hash, textOf(tool)]))]
    for (let from = 0; from < texts.length && !signal.aborted; from += BATCH) {
      const some = texts.slice(from, from + BATCH)
      const what = { what: 'the embeddings of tools', ms: TOOLS_MS, signal }
      const asked = some.map(([, text]) => text)
      const vectors = await withDeadline(what, (inner) => this.#options.embedder.embed(asked, inner))
      for (const [at, [hash]] of some.entries()) if (vectors[at]) await this.#vectors.save(hash, vectors[at])
    }
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
