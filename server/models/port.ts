/**
 * The port for language models: one streamed step at a time, in our own types, so that no vendor type leaves this folder. What a
 * provider attaches to its parts is kept in `meta` and sent back unchanged. No tools are run here.
 */

import type { Effort } from '../../contract/session-settings.ts'

/** Opaque JSON from the provider, such as signatures of thoughts; stored and sent back unchanged. */
export type ProviderMeta = Record<string, unknown>

export type AssistantPart =
  | { type: 'text'; text: string; meta?: ProviderMeta }
  | { type: 'reasoning'; text: string; meta?: ProviderMeta }
  /** `args` is the model's JSON, byte for byte. `invalid` says why it can't be used; such a call is shown but never run. */
  | { type: 'tool-call'; callId: string; name: string; args: string; invalid?: string; meta?: ProviderMeta }

/** A file that the model is shown, if it takes such files. Its content is read when the request is made. */
export interface ChatFile {
  /** For `StepRequest.readFile`. */
  id: string
  name: string
  /** An image type, `application/pdf` or `text/plain`. */
  mediaType: string
  size: number
  width?: number | undefined
  height?: number | undefined
  /** It is no longer shown, to save space; the model is told so. */
  isLeftOut?: true
}

export interface ToolAnswer {
  callId: string
  name: string
  /** The text for the model: the tool's result, or the user's decision. */
  text: string
  isError: boolean
  files?: ChatFile[]
}

export type ChatMessage =
  /** `note` is what the server adds for the model. */
  | { role: 'user'; text: string; note?: string; files?: ChatFile[] }
  | { role: 'assistant'; parts: AssistantPart[] }
  | { role: 'tool'; answers: ToolAnswer[] }

export interface ModelTool {
  name: string
  description: string
  inputSchema: Record<string, unknown>
}

export interface StepRequest {
  /** `provider/id`. */
  model: string
  system: string
  messages: ChatMessage[]
  tools: ModelTool[]
  maxOutputTokens?: number
  /** How much the model thinks. Left out for a model that rejects it; undefined leaves it to the provider. */
  effort?: Effort | undefined
  /** Left out for a model that rejects it, and while Claude thinks. */
  temperature?: number | undefined
  /** The same for all requests of a conversation, so that a provider can find them in its cache. */
  cacheKey?: string | undefined
  /** Reads a file of the messages; undefined if it is gone. */
  readFile?: (id: string) => Promise<Uint8Array | undefined>
  signal: AbortSignal
}

export interface TokenUsage {
  inputTokens: number
  /** How many of the input tokens the provider took from its cache, if it says so. */
  cachedTokens?: number
  /** How many of the input tokens it wrote to its cache, if it says so. */
  writtenTokens?: number
  outputTokens: number
}

/** The cost of a step, in whole units of the currency. */
export interface Cost {
  cost: number
  currency: string
}

/**
 * The events of one step: any number of deltas and retries, then exactly one `done`. Failures are thrown as AppError with a code
 * from ModelErrorCode. If the stream breaks, that is thrown too, and nothing of the step counts.
 */
export type StepEvent =
  | { type: 'text-delta'; text: string }
  | { type: 'reasoning-delta'; text: string }
  /** The wait before try number `attempt` (2 is the first retry), from the provider or our own backoff. */
  | { type: 'retry'; attempt: number; inMs: number; reason: string }
  | {
      type: 'done'
      parts: AssistantPart[]
      finish: 'stop' | 'tool-calls' | 'length' | 'refusal' | 'other'
      usage: TokenUsage & Partial<Cost>
    }

export type ModelErrorCode =
  | 'model_key_rejected' // 401, 403
  | 'model_not_found' // 404
  | 'model_rate_limited' // 429 after the last retry
  | 'model_overloaded' // 500, 503, 529 after the last retry
  | 'model_unreachable'
  | 'model_timeout' // no byte for too long
  | 'model_stream_cut'
  | 'model_empty_answer'
  | 'model_context_full'
  | 'model_request_rejected' // any other 4xx

/** Whether the model can look at images and PDFs. */
export interface ModelInputs {
  images: boolean
  pdfs: boolean
}

export interface ModelInfo {
  /** `provider/id`. */
  id: string
  name: string
  provider: string
  contextTokens?: number | undefined
  /** Missing if nobody says. */
  inputs?: ModelInputs
}

export interface ProviderStatus {
  id: string
  ok: boolean
  /** One sentence that says what to do; never contains the key. */
  reason?: string
}

export interface ModelCatalog {
  default: string
  models: ModelInfo[]
  providers: ProviderStatus[]
}

export interface Models {
  /** The last result of detection, which runs at the first call and again with `refresh`. A failing provider does not hide the others. */
  catalog(options?: { refresh?: boolean }): Promise<ModelCatalog>
  /** Resolves a model (`provider/id`, `claude/…`, or undefined for the default) to its id; throws invalid `model_unknown`. */
  resolve(requested: string | undefined): Promise<string>
  /** Proves the model with a minimal real call when it is first chosen; a success is remembered. */
  prove(model: string, signal?: AbortSignal): Promise<void>
  step(request: StepRequest): AsyncIterable<StepEvent>
  /** Undefined if nobody has set a price for the model. */
  costOf(model: string, usage: TokenUsage): Cost | undefined
}
