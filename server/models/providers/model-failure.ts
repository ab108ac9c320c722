import { APICallError } from '@ai-sdk/provider'
import { AppError, type ErrorKind, messageOf } from '../../lib/errors.ts'
import type { ModelErrorCode } from '../port.ts'
import { cleanText } from './clean-text.ts'
import type { Endpoint } from './endpoint.ts'
import { retryAfterMs } from './retry-after.ts'

/** Why a try failed, and whether to retry. */
export interface ModelFailure {
  error: AppError
  /** A few words for the user while waiting: "rate limited (429)". */
  reason: string
  retry: boolean
  /** The wait that the provider asked for; without it, our own backoff applies. */
  afterMs?: number | undefined
}

export interface FailureContext {
  endpoint: Endpoint
  modelId: string
  /** Whether an answer had begun: distinguishes a broken stream from an unreachable provider. */
  answered: boolean
}

interface Trouble {
  status: number | undefined
  message: string
  body: string | undefined
  headers: Record<string, string> | undefined
}

/** The vendor says that it has too much to do, or is not reached at all; other server errors are its own failures. */
const OVERLOADED_STATUS = new Set([503, 529])
const TRY_AGAIN_STATUS = new Set([408, 500, 502, 503, 504, 529])
const BAD_KEY = /API_KEY_INVALID|API key not valid|invalid[_ ]api[_ ]key|incorrect api key/i
const NO_MONEY = /insufficient_quota|billing_hard_limit|credit balance is too low/i

/** How each vendor says that the conversation no longer fits; there is no common code for it. */
const CONTEXT_FULL = [
  /prompt is too long/i, // Anthropic
  /exceed context limit/i, // Anthropic: input length and `max_tokens`
  /request_too_large/i, // Anthropic
  /context_length_exceeded/i, // OpenAI's code
  /exceeds the context window/i, // OpenAI responses
  /maximum context length/i, // OpenAI chat, vLLM, OpenRouter
  /token count.{0,40}exceeds the maximum number of tokens/i, // Gemini
  /exceeds? the available context/i, // llama.cpp
  /context (?:length|window|size|limit).{0,30}exceed/i, // Ollama, LM Studio and others
  /(?:greater|longer) than the context length/i, // LM Studio
  /must be less than max_seq_len/i, // SiliconFlow
  /reduce the length of the (?:messages|prompt|input)/i
]

const KINDS: Record<ModelErrorCode, ErrorKind> = {
  model_key_rejected: 'unavailable',
  model_not_found: 'not-found',
  model_rate_limited: 'unavailable',
  model_overloaded: 'unavailable',
  model_unreachable: 'unavailable',
  model_timeout: 'timeout',
  model_stream_cut: 'unavailable',
  model_empty_answer: 'unavailable',
  model_context_full: 'invalid',
  model_request_rejected: 'invalid'
}

/** Reads a vendor package's error, an error part of a stream or a broken connection. The result contains no key and no request. */
export function modelFailure(thrown: unknown, context: FailureContext): ModelFailure {
  if (thrown instanceof AppError) return { error: thrown, reason: thrown.code, retry: false }
  const trouble = readTrouble(thrown)
  if (trouble.status === undefined || trouble.status < 300) return brokenConnection(trouble, context)
  return fromStatus(trouble, trouble.status, context)
}

export function modelError(
  code: ModelErrorCode,
  message: string,
  context: Pick<FailureContext, 'endpoint' | 'modelId'>,
  status?: number
): AppError {
  const details = { provider: context.endpoint.provider, model: context.modelId, ...(status && { status }) }
  return new AppError(KINDS[code], code, message, { details })
}

function readTrouble(thrown: unknown): Trouble {
  if (APICallError.isInstance(thrown)) {
    const { statusCode, message, responseBody, responseHeaders } = thrown
    return { status: statusCode, message, body: responseBody, headers: responseHeaders }
  }
  if (thrown instanceof Error)
    return { status: undefined, message: messageOf(thrown), body: undefined, headers: undefined }
  return readErrorPart(thrown)
}

/** Error parts of a stream are plain objects, from the vendor packages or from a compatible server. */
function readErrorPart(part: unknown): Trouble {
  const fields: { message?: unknown; statusCode?: unknown; code?: unknown; data?: unknown } =
    typeof part === 'object' && part !== null ? part : { message: part }
  const status = [fields.statusCode, fields.code].map(Number).find((code) => code >= 400 && code < 600) ?? 500
  const message = typeof fields.message === 'string' ? fields.message : 'an error without a message'
  return { status, message, body: JSON.stringify(part) ?? '', headers: undefined }
}

function brokenConnection(trouble: Trouble, context: FailureContext): ModelFailure {
  const { endpoint } = context
  if (context.answered) {
    const message = `${endpoint.label} disconnected in the middle of the answer. Send the message again.`
    return { error: modelError('model_stream_cut', message, context), reason: 'answer broken off', retry: true }
  }
  const why = cleanText(trouble.message, endpoint.secrets, 150)
  const message = `${endpoint.label} can't be reached at ${endpoint.shownUrl} (${why}). Check the network and ${endpoint.urlSetting}.`
  return { error: modelError('model_unreachable', message, context), reason: 'not reachable', retry: true }
}

function fromStatus(trouble: Trouble, status: number, context: FailureContext): ModelFailure {
  const { label, secrets, keySetting, urlSetting, shownUrl } = context.endpoint
  const text = `${trouble.message} ${trouble.body ?? ''}`.slice(0, 20_000)
  const said = cleanText(trouble.message || (trouble.body ?? ''), secrets)
  const quote = said === '' ? '.' : `: "${said}".`
  const fail = (code: ModelErrorCode, message: string, reason: string, retry = false): ModelFailure => ({
    error: modelError(code, message, context, status),
    reason: `${reason} (${status})`,
    retry,
    afterMs: retryAfterMs(trouble.headers, trouble.body)
  })

  if (status < 400) {
    const message = `${label} answers at ${shownUrl} with a redirect, which is not followed because it would send the key to another address. Set ${urlSetting} to the final address.`
    return fail('model_request_rejected', message, 'redirected')
  }
  if (status === 401 || status === 403 || (status === 400 && BAD_KEY.test(text))) {
    return fail(
      'model_key_rejected',
      `${label} rejected the key (${status})${quote} Check ${keySetting}.`,
      'key rejected'
    )
  }
  if (status === 429) {
    const noMoney = NO_MONEY.test(text)
    const advice = noMoney ? 'Check the plan and billing there.' : 'Wait a little, then send the message again.'
    return fail('model_rate_limited', `${label} limits our requests (429)${quote} ${advice}`, 'rate limited', !noMoney)
  }
  if (status === 413 || CONTEXT_FULL.some((wording) => wording.test(text))) {
    return fail('model_context_full', `The conversation is too long for ${context.modelId}${quote}`, 'context full')
  }
  if (status === 404) {
    const message = `${label} has no model "${context.modelId}" for this key (404)${quote} Choose another model.`
    return fail('model_not_found', message, 'not found')
  }
  if (status >= 500 || status === 408) {
    const message = `${label} is overloaded or not working (${status})${quote} Send the message again later.`
    const reason = OVERLOADED_STATUS.has(status) ? 'overloaded' : 'server error'
    return fail('model_overloaded', message, reason, TRY_AGAIN_STATUS.has(status))
  }
  return fail('model_request_rejected', `${label} rejected the request (${status})${quote}`, 'rejected')
}
