import { AppError, isAppError } from '../lib/errors.ts'
import type { CallEnd } from './audit.ts'

/** The call was sent when it failed, or its result could not be stored: it may or may not have taken effect. */
const MAY_HAVE_RUN = new Set([
  'child_lost',
  'child_timeout',
  'child_answer_invalid',
  'connection_lost',
  'call_timeout',
  'answer_invalid',
  'outcome_unknown',
  'store_unavailable',
  'lease_lost',
  'server_stopped'
])
/** A rule or a person rejected it, or nobody could be asked. */
const REFUSED = /^(approval|denied|definition_changed|target_changed|not_approved)/

/** Whether it failed before anything was sent to the server, or possibly after. */
export type Stage = 'deciding' | 'calling'

/** Tracks how far a call has come. The time counts from sending, so that it does not include the wait for approval. */
export class CallProgress {
  #sentAt: number | undefined

  get stage(): Stage {
    return this.#sentAt === undefined ? 'deciding' : 'calling'
  }

  sending(): void {
    this.#sentAt = performance.now()
  }

  /** undefined if the call was never sent. */
  get calledMs(): number | undefined {
    return this.#sentAt === undefined ? undefined : performance.now() - this.#sentAt
  }
}

export function callReturned(result: { isError?: unknown }): CallEnd {
  return { outcome: result.isError === true ? 'tool_error' : 'ok' }
}

export function callFailed(error: unknown, stage: Stage): CallEnd {
  if (!isAppError(error)) return { outcome: stage === 'calling' ? 'unknown' : 'failed', code: 'internal' }
  const { code, kind } = error
  if (kind === 'cancelled')
    return { outcome: stage === 'calling' && error.details.sent === true ? 'unknown' : 'cancelled', code }
  if (REFUSED.test(code)) return { outcome: 'refused', code }
  return { outcome: stage === 'calling' && mayHaveRun(error) ? 'unknown' : 'failed', code }
}

/** The same error, of a call of which nothing was sent: it certainly had no effect, and may be made later. */
export function notBegun(error: unknown): unknown {
  if (!isAppError(error)) return error
  const { kind, code, message, details, where } = error
  return new AppError(kind, code, message, {
    details: { ...details, sent: false },
    cause: error,
    ...(where !== undefined && { where })
  })
}

/** Whether a call that failed with this error may have taken effect nevertheless. */
export function mayHaveRun(error: unknown): boolean {
  return !isAppError(error) || (error.details.sent !== false && MAY_HAVE_RUN.has(error.code))
}
