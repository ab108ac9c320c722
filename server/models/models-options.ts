import type { Logger } from '../lib/logger.ts'

export const PROVIDER_IDS = ['anthropic', 'gemini', 'openai', 'openai-compatible', 'demo'] as const
export type ProviderId = (typeof PROVIDER_IDS)[number]

interface ProviderAccess {
  apiKey: string
  baseUrl?: string
}

export interface ModelTimeouts {
  /** Listing one provider's models. */
  detectMs: number
  /** Silence of a model, from the request on and between any two bytes. */
  idleMs: number
  /** One try of one step, however chatty. */
  stepMs: number
  /** The minimal call that proves a model. */
  proveMs: number
  /** The longest wait that a provider may ask for before another try. */
  maxRetryWaitMs: number
  /** The first wait when the provider does not say; doubles with each try. */
  backoffMs: number
}

export interface ModelsOptions {
  /** Provider of the default model; undefined: the first that has a key, else demo. */
  provider?: ProviderId | undefined
  /** Default model, as an id of that provider or `provider/id`. */
  model?: string | undefined
  anthropic?: ProviderAccess | undefined
  gemini?: ProviderAccess | undefined
  openai?: ProviderAccess | undefined
  openaiCompatible?: { apiKey?: string; baseUrl: string } | undefined
  logger: Logger
  timeouts?: Partial<ModelTimeouts> | undefined
}

export const DEFAULT_TIMEOUTS: ModelTimeouts = {
  detectMs: 10_000,
  // A model may think for minutes without a word, and one on this machine reads its prompt as slowly. Below the five of `fetch`.
  idleMs: 240_000,
  stepMs: 15 * 60_000,
  proveMs: 30_000,
  maxRetryWaitMs: 60_000,
  backoffMs: 1_000
}
