/**
 * Language models as the agent sees them: one streamed step at a time, in our own words, so that no vendor type leaves this
 * folder. What a provider attaches to its parts travels in `meta`, stored and sent back unchanged. No tools are run here.
 */

/** Opaque JSON of the provider (signatures of thoughts and the like); kept and returned as it came. */
export type ProviderMeta = Record<string, unknown>

export type AssistantPart =
  | { type: 'text'; text: string; meta?: ProviderMeta }
  | { type: 'reasoning'; text: string; meta?: ProviderMeta }
  /** `args` are the exact bytes of the model's JSON; `invalid` says why they can't be used (then they are shown, never run). */
  | { type: 'tool-call'; callId: string; name: string; args: string; invalid?: string; meta?: ProviderMeta }

export interface ToolAnswer {
  callId: string
  name: string
  /** What the model is told: the tool's text, or what the human said. */
  text: string
  isError: boolean
}

export type ChatMessage =
  | { role: 'user'; text: string }
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
  signal: AbortSignal
}

export interface TokenUsage {
  inputTokens: number
  outputTokens: number
}

/**
 * One step's events: any number of deltas and retries, then exactly one `done`. Failures are thrown as AppError instead, with one
 * of the codes in ModelErrorCode; a cut in the middle of a stream throws too, and nothing of that step counts.
 */
export type StepEvent =
  | { type: 'text-delta'; text: string }
  | { type: 'reasoning-delta'; text: string }
  /** Waiting before try number `attempt` (2 is the first repetition), as the provider told us or by backoff. */
  | { type: 'retry'; attempt: number; inMs: number; reason: string }
  | {
      type: 'done'
      parts: AssistantPart[]
      finish: 'stop' | 'tool-calls' | 'length' | 'refusal' | 'other'
      usage: TokenUsage
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

export interface ModelInfo {
  /** `provider/id`. */
  id: string
  name: string
  provider: string
  contextTokens?: number
}

export interface ProviderStatus {
  id: string
  ok: boolean
  /** One sentence, with what to do; never the key. */
  reason?: string
}

export interface ModelCatalog {
  default: string
  models: ModelInfo[]
  providers: ProviderStatus[]
}

export interface Models {
  /** The last result of detection, which runs at the first call and again with `refresh`; one failing provider hides no other. */
  catalog(options?: { refresh?: boolean }): Promise<ModelCatalog>
  /** Resolves a wish (`provider/id`, `claude/…`, or undefined for the default) to a model id; throws invalid `model_unknown`. */
  resolve(wish: string | undefined): Promise<string>
  /** Proves the model with a minimal real call the first time it is chosen; the good verdict is remembered. */
  prove(model: string, signal?: AbortSignal): Promise<void>
  step(request: StepRequest): AsyncIterable<StepEvent>
}
