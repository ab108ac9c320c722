/**
 * Improves routing with a model, if one is configured: similarity in meaning, and example requests. Owns when that work is done
 * (in the background, from the first call on); the router decides how much it counts. Invariant: everything works without it.
 */
import { messageOf } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import type { Embedder } from '../../models/embedder.ts'
import type { Similarities } from '../../routing/port.ts'
import type { KeyValueStore } from '../../storage/key-value-store.ts'
import type { ToolIndex } from '../tool-index.ts'
import { ToolExamples, type WriteText } from './tool-examples.ts'
import { ToolMeanings } from './tool-meanings.ts'

export interface EnrichmentOptions {
  index: ToolIndex
  keyValues: KeyValueStore
  logger: Logger
  /** For similarity in meaning. */
  embedder?: Embedder | undefined
  /** For example requests. */
  write?: WriteText | undefined
}

export class Enrichment {
  /** The embeddings are computed on this machine. */
  readonly isLocal: boolean
  readonly #meanings: ToolMeanings | undefined
  readonly #examples: ToolExamples | undefined
  readonly #index: ToolIndex
  readonly #logger: Logger
  #awake = false

  constructor({ index, keyValues, logger, embedder, write }: EnrichmentOptions) {
    this.isLocal = embedder?.isLocal === true
    this.#index = index
    this.#logger = logger
    const tools = () =>
      index.entries().flatMap(({ name }) => (index.tools(name) ?? []).map((tool) => ({ server: name, tool })))
    const common = { keyValues, logger, tools }
    const onWritten = (server: string) => index.refresh(server)
    this.#meanings = embedder && new ToolMeanings({ ...common, embedder })
    this.#examples = write && new ToolExamples({ ...common, write, onWritten })
  }

  /** Loads what is in the store; asks no model. */
  async restore(): Promise<void> {
    await Promise.all([this.#meanings?.restore(), this.#examples?.restore()]).catch((error) => {
      this.#logger.warn(`Could not read stored embeddings and examples: ${messageOf(error)}`)
    })
  }

  /** Starts computing what is missing. Called when someone uses the tools. */
  wake(): void {
    this.#awake = true
    this.seen()
  }

  /** Called when the tools may have changed. */
  seen(): void {
    if (!this.#awake) return
    this.#meanings?.wake()
    this.#examples?.wake()
  }

  async similarities(request: string, signal: AbortSignal): Promise<Similarities | undefined> {
    return this.#meanings?.similarities(request, signal)
  }

  /** How many of a server's tools can be found by meaning; undefined without embeddings. */
  embedded(server: string): number | undefined {
    return this.#meanings?.done((this.#index.tools(server) ?? []).map((tool) => ({ server, tool })))
  }

  examplesOf(hash: string): readonly string[] | undefined {
    return this.#examples?.of(hash)
  }

  async close(): Promise<void> {
    await Promise.all([this.#meanings?.close(), this.#examples?.close()])
  }
}
