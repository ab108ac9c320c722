import { ProtocolError, ProtocolErrorCode, SdkError, SdkErrorCode } from '@modelcontextprotocol/client'
import { AppError, isAppError, messageOf } from '../../lib/errors.ts'
import { isRecord } from '../../lib/is-record.ts'
import { FILTER_ERROR } from './message-filter.ts'
import { readTarget } from './result-schema.ts'
import { connectionLost } from './stream-transport.ts'

const MAX_TEXT_CHARS = 500

/** Translates a failed request to the sandbox to an AppError. A request that was cancelled here had been sent. */
export function translateCallError(error: unknown, method: string, signal?: AbortSignal): AppError {
  if (isAppError(error)) return error
  if (signal?.aborted) {
    const { reason } = signal
    const { kind, code, message, details } = isAppError(reason)
      ? reason
      : new AppError('cancelled', 'cancelled', 'The call was cancelled.')
    return new AppError(kind, code, message, { cause: error, details: { ...details, sent: true } })
  }
  if (error instanceof ProtocolError) return refusal(error)
  const code = error instanceof SdkError ? error.code : undefined
  if (code === SdkErrorCode.RequestTimeout) {
    return new AppError('timeout', 'call_timeout', 'The sandbox did not respond in time; the call was stopped.', {
      cause: error
    })
  }
  if (code === SdkErrorCode.InvalidResult || code === SdkErrorCode.UnsupportedResultType) {
    const reason = messageOf(error).slice(0, MAX_TEXT_CHARS)
    return new AppError('unavailable', 'answer_invalid', `The sandbox sent an invalid answer to ${method}: ${reason}`)
  }
  // All other errors are the SDK's ways to say that there is no connection.
  return connectionLost(error)
}

/** The workspace server answered with an error. */
function refusal(error: ProtocolError): AppError {
  const text = error.message.slice(0, MAX_TEXT_CHARS)
  const reason = isRecord(error.data) ? error.data.code : undefined
  if (reason === 'stale_epoch') return staleEpoch()
  if (reason === 'target_changed' && isRecord(error.data)) return targetChanged(error.data.target)
  if (error.code === FILTER_ERROR.resultTooLarge) {
    return new AppError('invalid', 'result_too_large', 'The result is larger than 8 MB: ask for a smaller part of it.')
  }
  if (error.code === FILTER_ERROR.answerUnreadable) {
    return new AppError('unavailable', 'answer_invalid', "The sandbox sent an answer that can't be read.")
  }
  if (error.code === ProtocolErrorCode.InvalidParams) return new AppError('invalid', 'call_refused', text)
  return new AppError('unavailable', 'call_failed', `The server in the sandbox failed: ${text}`)
}

/** The target comes from the sandbox and is shown to the person who is asked again. */
function targetChanged(target: unknown): AppError {
  try {
    const message = 'The path no longer leads to what was approved; nothing was done.'
    return new AppError('conflict', 'target_changed', message, { details: { target: readTarget(target) } })
  } catch {
    return new AppError('unavailable', 'answer_invalid', "The sandbox sent an answer that can't be read.")
  }
}

export function staleEpoch(): AppError {
  return new AppError('conflict', 'stale_epoch', 'Another instance has taken over this sandbox: reload the session.')
}
