import {
  OAuthClientFlowError,
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  SseError,
  UnauthorizedError
} from '@modelcontextprotocol/client'
import { quotedLine } from '../../../contract/hidden-characters.ts'
import { AppError, isAppError, messageOf } from '../../lib/errors.ts'
import { redactTexts } from '../../lib/redact-texts.ts'
import { ANSWER_LOST, RESULT_TOO_LARGE } from './answer-limits.ts'

const MAX_TEXT_CHARS = 1000
const MAX_CAUSES = 5
const MAY_HAVE_RUN = 'It may have run: if it changes something, check before you repeat it.'
/** The connection was refused, so nothing was sent over it. */
const UNREACHED = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT'
])

/**
 * Turns the failure of a request into an `AppError`. `details.sent` is false if it certainly had no effect. For a request that was
 * cancelled, `isSent` says so.
 */
export function callFailure(
  server: string,
  what: string,
  error: unknown,
  signal?: AbortSignal,
  isSent = true
): AppError {
  if (isAppError(error)) return error
  const fail = (kind: AppError['kind'], code: string, message: string, details: Details = { sent: true }) =>
    new AppError(kind, code, message, { cause: error, details })
  if (signal?.aborted) {
    const { reason } = signal
    if (!isAppError(reason)) return fail('cancelled', 'cancelled', 'The call was cancelled.', { sent: isSent })
    return fail(reason.kind, reason.code, reason.message, { ...reason.details, sent: isSent })
  }
  const text = messageOf(error).slice(0, MAX_TEXT_CHARS)
  const lost = `"${server}" ended before it answered ${what}. ${MAY_HAVE_RUN}`
  if (error instanceof ProtocolError) {
    if (error.code === ANSWER_LOST) return fail('unavailable', 'child_lost', lost)
    if (error.code !== RESULT_TOO_LARGE) return fail('invalid', 'child_refused', `"${server}" refused ${what}: ${text}`)
    const message = `The answer of "${server}" is too large. Ask for a smaller part.`
    return fail('invalid', 'result_too_large', message)
  }
  if (error instanceof UnauthorizedError || error instanceof OAuthClientFlowError) {
    return loginNeeded(server, `refuses its login (${text.slice(0, 200)})`)
  }
  const code = error instanceof SdkError ? error.code : undefined
  if (code === SdkErrorCode.RequestTimeout) {
    return fail('timeout', 'child_timeout', `"${server}" did not answer ${what} in time. ${MAY_HAVE_RUN}`)
  }
  if (code === SdkErrorCode.InvalidResult || code === SdkErrorCode.UnsupportedResultType) {
    const message = `"${server}" answered ${what} with something invalid: ${text}`
    return fail('unavailable', 'child_answer_invalid', message)
  }
  if (error instanceof SdkHttpError) return httpFailure(server, error.status, fail)
  if (error instanceof SseError) {
    if (error.code !== undefined) return httpFailure(server, error.code, fail)
    // The stream comes before any request, so nothing was sent. Its text is all that is known about the cause.
    const why = text.replace(/^SSE error: (TypeError: fetch failed: )?/, '').replace(/\.$/, '')
    return fail('unavailable', 'child_unreachable', `"${server}" can't be reached (${why}).`, { sent: false })
  }
  const chain = causesOf(error)
  const reason = unreachedBy(chain)
  if (reason !== undefined) {
    return fail('unavailable', 'child_unreachable', `"${server}" can't be reached (${reason}).`, { sent: false })
  }
  if (chain.some((each) => each instanceof TypeError)) {
    const why = chain.at(-1)?.message.slice(0, MAX_TEXT_CHARS) ?? text
    return fail('unavailable', 'child_lost', `The connection to "${server}" broke: ${why}`)
  }
  if (code !== SdkErrorCode.NotConnected) return fail('unavailable', 'child_lost', lost)
  return fail('unavailable', 'child_lost', `"${server}" is not connected.`, { sent: false })
}

interface Details extends Record<string, unknown> {
  sent: boolean
}

function httpFailure(
  server: string,
  status: number | undefined,
  fail: (kind: AppError['kind'], code: string, message: string, details: Details) => AppError
): AppError {
  if (status === 401 || status === 403) {
    const message = `"${server}" refuses our credentials (HTTP ${status}): check its headers in mcp.json.`
    // A retry costs nothing, and works as soon as the credentials are fixed.
    return fail('forbidden', 'child_forbidden', message, { sent: false, permanent: true, status })
  }
  const isRedirect = status !== undefined && status >= 300 && status < 400
  const hint = isRedirect ? ' Redirects are not followed: put its final address into mcp.json.' : ''
  // 404: the session is gone on the server; it rejected the request unread.
  const details = { sent: status !== 404, ...(status === undefined ? {} : { status }) }
  return fail('unavailable', 'child_lost', `"${server}" answered with HTTP ${status}.${hint}`, details)
}

/** A server may quote its own token in an error. Its original answer stays the cause, because it may be passed on. */
export function withoutSecrets(error: AppError, redact: (text: string) => string): AppError {
  const { kind, code, details, cause } = error
  const original =
    cause instanceof ProtocolError
      ? new ProtocolError(cause.code, redact(cause.message), redactTexts(cause.data, redact))
      : undefined
  // Redact before joining lines: a secret of several lines would not be recognized afterwards.
  return new AppError(kind, code, quotedLine(redact(error.message)), { details, cause: original })
}

/** The code of the error if no connection was made. */
export function unreachedBy(chain: Error[]): string | undefined {
  return chain.map((each) => ('code' in each ? String(each.code) : '')).find((code) => UNREACHED.has(code))
}

/** The SDK wraps failures of initialization, and `fetch` those of requests: the innermost error says what happened. */
export function causesOf(error: unknown): Error[] {
  const chain: Error[] = []
  for (let each = error; each instanceof Error && chain.length < MAX_CAUSES; each = each.cause) chain.push(each)
  return chain
}

const SAFE_TO_REPEAT = ['child_lost', 'child_timeout']

/** Whether the same call may be made elsewhere: it certainly did not run, or is safe to repeat. */
export function mayRepeat(error: unknown, mustNotRepeat: boolean): boolean {
  return certainlyNotRun(error) || (!mustNotRepeat && SAFE_TO_REPEAT.some((code) => isAppError(error, code)))
}

/** For a remote server: whether the next request needs a new connection after this failure. */
export function endsConversation(error: unknown): boolean {
  // The connection may be bound to credentials that were replaced since. A 403 is about this one request.
  if (isAppError(error, 'child_forbidden')) return error.details.status === 401
  if (!isAppError(error, 'child_lost')) return false
  const { status } = error.details
  // A lost session is a 404, on some servers a 400. Any other status answers this one request.
  return status === undefined || status === 404 || status === 400
}

/** For a remote server: its answer suggests that it does not know the request, so its session may be gone. */
export function isOddStatus(error: unknown): boolean {
  return isAppError(error, 'child_lost') && error.details.status !== undefined && !endsConversation(error)
}

/** The definition that was checked before the call is not the one that the server has now. */
export function definitionChanged(server: string, tool: string): AppError {
  const message = `${server}/${tool} has just changed and was not run. Make the call again.`
  return new AppError('conflict', 'definition_changed', message)
}

export function certainlyNotRun(error: unknown): boolean {
  return isAppError(error) && error.details.sent === false
}

export function loginNeeded(server: string, what: string, hint = ''): AppError {
  const message = `The server "${server}" ${what}: run mcp-orchestrator servers login ${JSON.stringify(server)}.${hint}`
  return new AppError('forbidden', 'login_required', message, { details: { sent: false, permanent: true } })
}

/** Failures to start whose message contains nothing of the entry, or that only the caller can resolve. */
const TOLD_TO_MEMBERS = new Set([
  'login_required',
  'secret_not_granted',
  'server_resting',
  'shutting_down',
  'tools_missing'
])

/** The message for callers who are not administrators about a server that does not start. */
export function toldToMembers(server: string, code: string, reason: string): string {
  if (TOLD_TO_MEMBERS.has(code)) return reason
  return `The server "${server}" could not be started. An administrator can see why: mcp-orchestrator servers test ${server}`
}
