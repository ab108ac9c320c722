import { isAppError } from '../../lib/errors.ts'
import type { CallEnd } from './audit.ts'

/** It was on its way when it failed: whether it took effect, nobody knows. */
const MAY_HAVE_RUN = new Set(['child_lost', 'child_timeout', 'child_answer_invalid', 'outcome_unknown'])

export function callReturned(result: { isError?: unknown }): CallEnd {
  return { outcome: result.isError === true ? 'tool_error' : 'ok' }
}

/** Where it failed: while a tool was looked for, before policy and human had said yes, or on its way to the server. */
export type Stage = 'routing' | 'asking' | 'calling'

export function callFailed(error: unknown, stage: Stage): CallEnd {
  if (!isAppError(error)) return { outcome: stage === 'calling' ? 'unknown' : 'failed', code: 'internal' }
  const { code, kind, details } = error
  if (kind === 'cancelled') return { outcome: 'cancelled', code }
  if (stage === 'asking' || code === 'denied_by_policy') return { outcome: 'refused', code }
  if (stage === 'routing') return { outcome: 'failed', code }
  return { outcome: details.sent !== false && MAY_HAVE_RUN.has(code) ? 'unknown' : 'failed', code }
}
