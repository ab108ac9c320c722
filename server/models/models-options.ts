import type { Logger } from '../lib/logger.ts'
import type { PriceTable } from './price-table.ts'

export const PROVIDER_IDS = ['anthropic', 'gemini', 'openai', 'openai-compatible', 'demo'] as const
export type ProviderId = (typeof PROVIDER_IDS)[number]

interface ProviderAccess {
  apiKey: string
  baseUrl?: string
}

export interface ModelTimeouts {
  /** For listing one provider's models. */
  detectMs: number
  /** The longest silence of a model, after the request and between any two bytes. */
  idleMs: number
  /** For one try of one step, however much it sends. */
  stepMs: number
  /** For the minimal call that proves a model. */
  proveMs: number
  /** The longest wait before a retry that a provider may ask for. */
  maxRetryWaitMs: number
  /** The first wait if the provider does not say how long; doubles with each try. */
  backoffMs: number
}

export interface ModelsOptions {
  /** Provider of the default model; defaults to the first that has a key, else demo. */
  provider?: ProviderId | undefined
  /** The default model, as an id of that provider or as `provider/id`. */
  model?: string | undefined
  anthropic?: ProviderAccess | undefined
  gemini?: ProviderAccess | undefined
  openai?: ProviderAccess | undefined
  openaiCompatible?: { apiKey?: string; baseUrl: string } | undefined
  prices?: PriceTable | undefined
  logger: Logger
  timeouts?: Partial<ModelTimeouts> | undefined
}

export const DEFAULT_TIMEOUTS: ModelTimeouts = {
  detectMs: 10_000,
  // A model may think for minutes without sending anything, and a local one may read its prompt as slowly. Below the five minutes
  // of `fetch`.
  idleMs: 240_000,
  stepMs: 15 * 60_000,
  proveMs: 30_000,
  maxRetryWaitMs: 60_000,
  backoffMs: 1_000
}

/** Replaces the access to providers while the program runs. */
export interface KeyedModels {
  /** Throws if this provider can't be used with the access. Changes nothing. */
  tryAccess(access: Omit<ModelsOptions, 'logger'>, provider: ProviderId): Promise<void>
  useAccess(access: Omit<ModelsOptions, 'logger'>): void
}
