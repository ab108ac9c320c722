/**
 * Owns the models: which ones exist, whether one works, and how to run one streamed step, with a vendor's model or the demo. Owns
 * no conversation and runs no tools. Keys stay in the endpoints: no message, log line or error contains one.
 */

import { AppError, isAppError } from '../lib/errors.ts'
import { SingleFlight } from '../lib/waiting/single-flight.ts'
import { DEMO_INFO } from './demo/demo-info.ts'
import { demoStep } from './demo/demo-step.ts'
import { buildCatalog } from './detection/build-catalog.ts'
import { type Detected, type DetectOptions, detect } from './detection/detect.ts'
import type { ListedModel } from './detection/list-models.ts'
import { configuredModelOf, splitModelId } from './model-id.ts'
import {
  DEFAULT_TIMEOUTS,
  type KeyedModels,
  type ModelsOptions,
  type ModelTimeouts,
  type ProviderId
} from './models-options.ts'
import type { Cost, ModelCatalog, Models, StepEvent, StepRequest, TokenUsage } from './port.ts'
import type { PriceTable } from './price-table.ts'
import { Proofs } from './proofs.ts'
import { configuredEndpoints, type Endpoint } from './providers/endpoint.ts'
import { modelInputs } from './providers/model-inputs.ts'
import { RefusedFiles } from './step/refused-files.ts'
import { RejectedOptions } from './step/rejected-options.ts'
import { remoteStep } from './step/remote-step.ts'

const MAX_TRIES = 4
const PROOF_TRIES = 2
/** A request for an unknown model repeats the detection, at most this often. */
const DETECTION_FRESH_MS = 10_000
/** Enough for any answer. A model's own maximum would reduce the space for the conversation. */
const DEFAULT_OUTPUT_TOKENS = 32_000

export function createModels(options: ModelsOptions): Models & KeyedModels {
  return new DetectedModels(options)
}

class DetectedModels implements Models, KeyedModels {
  #options: ModelsOptions
  readonly #timeouts: ModelTimeouts
  #endpoints: Endpoint[]
  #proofs: Proofs
  readonly #refusedFiles = new RefusedFiles()
  #last: { at: number; detected: Detected[]; catalog: ModelCatalog } | undefined
  readonly #detection = new SingleFlight<ModelCatalog>()
  readonly #rejected = new RejectedOptions()

  constructor(options: ModelsOptions) {
    this.#options = options
    this.#timeouts = { ...DEFAULT_TIMEOUTS, ...options.timeouts }
    this.#endpoints = configuredEndpoints(options)
    this.#proofs = this.#noProofs()
  }

  #noProofs(): Proofs {
    return new Proofs((request) => this.#step(request, PROOF_TRIES), this.#timeouts.proveMs)
  }

  async tryAccess(access: Omit<ModelsOptions, 'logger'>, provider: ProviderId): Promise<void> {
    const endpoints = configuredEndpoints(access).filter((endpoint) => endpoint.provider === provider)
    const [found] = await detect(endpoints, this.#detectOptions(access))
    if (found?.reason) throw new AppError('invalid', 'key_refused', found.reason)
  }

  useAccess(access: Omit<ModelsOptions, 'logger'>): void {
    this.#options = { ...this.#options, ...access }
    this.#endpoints = configuredEndpoints(access)
    this.#proofs = this.#noProofs()
    this.#last = undefined
  }

  async catalog({ refresh = false }: { refresh?: boolean } = {}): Promise<ModelCatalog> {
    if (this.#last !== undefined && !refresh) return this.#last.catalog
    return this.#detection.run(() => this.#detect())
  }

  async resolve(requested: string | undefined): Promise<string> {
    const known = await this.catalog()
    if (requested === undefined || requested === '') return known.default
    const found =
      match(known, requested) ?? (this.#isStale() ? match(await this.catalog({ refresh: true }), requested) : undefined)
    if (found !== undefined) return found
    throw unknownModel(requested, await this.catalog())
  }

  async prove(model: string, signal?: AbortSignal): Promise<void> {
    await this.#proofs.prove(model, signal)
  }

  step(request: StepRequest): AsyncIterable<StepEvent> {
    return this.#step(request, MAX_TRIES)
  }

  async #detect(): Promise<ModelCatalog> {
    const { provider, model } = this.#options
    const endpoints = this.#endpoints
    const detected = await detect(endpoints, this.#detectOptions(this.#options))
    // A key was changed meanwhile.
    if (endpoints !== this.#endpoints) return this.#detect()
    const catalog = withLimits(buildCatalog(detected, { provider, model }), this.#options.prices)
    this.#last = { at: performance.now(), detected, catalog }
    return catalog
  }

  #detectOptions({ provider, model }: Omit<ModelsOptions, 'logger'>): DetectOptions {
    const wanted = (endpoint: Endpoint) => configuredModelOf(endpoint.provider, { provider, model })
    return { timeoutMs: this.#timeouts.detectMs, wanted, logger: this.#options.logger }
  }

  #isStale(): boolean {
    return this.#last === undefined || performance.now() - this.#last.at > DETECTION_FRESH_MS
  }

  async *#step(request: StepRequest, maxTries: number): AsyncGenerator<StepEvent, void> {
    const split = splitModelId(request.model)
    if (request.model === DEMO_INFO.id) return yield* demoStep(request)
    const endpoint = this.#endpoints.find(({ provider }) => provider === split?.provider)
    if (split === undefined || endpoint === undefined) throw unknownModel(request.model)
    const { id: modelId } = split
    const events = remoteStep({
      endpoint,
      modelId,
      request: { ...request, ...this.#outputLimit(request, endpoint, modelId) },
      timeouts: this.#timeouts,
      maxTries,
      rejected: this.#rejected,
      inputs: modelInputs(endpoint.provider, modelId, this.#listed(endpoint, modelId)?.inputs),
      refusedFiles: this.#refusedFiles,
      logger: this.#options.logger
    })
    try {
      for await (const event of events) {
        yield event.type === 'done'
          ? { ...event, usage: { ...event.usage, ...this.costOf(request.model, event.usage) } }
          : event
      }
    } catch (error) {
      if (isAppError(error, 'model_not_found')) this.#leaveOut(endpoint, modelId)
      throw error
    }
  }

  costOf(model: string, usage: TokenUsage): Cost | undefined {
    return this.#options.prices?.costOf(model, usage)
  }

  /** The provider lists a model that it does not have for this key. It stays out of the list until the next detection. */
  #leaveOut(endpoint: Endpoint, modelId: string): void {
    if (this.#last === undefined) return
    const { provider, model, prices } = this.#options
    const detected = this.#last.detected.map((found) =>
      found.endpoint === endpoint ? { ...found, models: found.models.filter(({ id }) => id !== modelId) } : found
    )
    this.#last = { ...this.#last, detected, catalog: withLimits(buildCatalog(detected, { provider, model }), prices) }
  }

  #listed(endpoint: Endpoint, modelId: string): ListedModel | undefined {
    const listed = this.#last?.detected.find((found) => found.endpoint === endpoint)?.models
    return listed?.find(({ id }) => id === modelId)
  }

  /** Anthropic requires a limit; the list of models says what is allowed. */
  #outputLimit(request: StepRequest, endpoint: Endpoint, modelId: string): { maxOutputTokens?: number } {
    if (request.maxOutputTokens !== undefined || endpoint.provider !== 'anthropic') return {}
    const allowed = this.#listed(endpoint, modelId)?.maxOutputTokens
    return allowed === undefined ? {} : { maxOutputTokens: Math.min(allowed, DEFAULT_OUTPUT_TOKENS) }
  }
}

/** The table says it for models whose provider does not, or knows it better. */
function withLimits(catalog: ModelCatalog, prices: PriceTable | undefined): ModelCatalog {
  const models = catalog.models.map((model) => {
    const contextTokens = prices?.contextTokens(model.id) ?? model.contextTokens
    return { ...model, ...(contextTokens !== undefined && { contextTokens }) }
  })
  return { ...catalog, models }
}

/** Accepts `provider/id`, an alias of the provider, or a bare id that exactly one provider offers. */
function match({ models }: ModelCatalog, requested: string): string | undefined {
  const split = splitModelId(requested)
  const named = split && `${split.provider}/${split.id}`
  const exact = models.find(({ id }) => id === named)
  if (exact !== undefined) return exact.id
  const bare = models.filter(({ id, provider }) => id === `${provider}/${requested}`)
  return bare.length === 1 ? bare[0]?.id : undefined
}

function unknownModel(requested: string, catalog?: ModelCatalog): AppError {
  const provider = splitModelId(requested)?.provider
  const reason = catalog?.providers.find(({ id, ok }) => id === provider && !ok)?.reason
  const message = `There is no model "${requested.slice(0, 100)}" here. ${reason ?? 'Choose one from the list of models.'}`
  return new AppError('invalid', 'model_unknown', message)
}
