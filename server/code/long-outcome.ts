/**
 * Reads what a run returned and printed piece by piece, because its answer has only a bounded part. In a chat, the log of a run is
 * removed with its result, so a longer outcome is kept until the session's next program has ended.
 */
import { headOf } from '../lib/cut-text.ts'
import { AppError } from '../lib/errors.ts'
import type { EventLog } from '../storage/event-log.ts'
import { keptOutcomeId, type RunState } from './run-log.ts'

export const MAX_VALUE_CHARS = 32_000
export const MAX_LOG_CHARS = 16_000

/** All that a run returned and printed. */
export interface WholeOutcome {
  /** As JSON. */
  value: string
  logs: string
}

export function wholeOutcome({ end, logs }: Pick<RunState, 'end' | 'logs'>): WholeOutcome {
  return { value: end?.ok ? (JSON.stringify(end.value) ?? 'null') : '', logs: logs.join('\n') }
}

function isCut({ value, logs }: WholeOutcome): boolean {
  return value.length > MAX_VALUE_CHARS || logs.length > MAX_LOG_CHARS
}

/** Throws `invalid_request` for a place that is not in the text. */
export function pieceOf(whole: WholeOutcome, from: unknown, of: unknown = 'value'): Record<string, unknown> {
  if (of !== 'value' && of !== 'logs') throw invalid('"of" must be "value" or "logs".')
  const text = whole[of]
  if (text === '') throw invalid(`This run has no ${of} (yet).`)
  if (typeof from !== 'number' || !Number.isInteger(from) || from < 0 || from > text.length)
    throw invalid(`"from" must be a whole number from 0 to ${text.length}, the length of the ${of}.`)
  const piece = headOf(text.slice(from), MAX_VALUE_CHARS).toWellFormed()
  const next = from + piece.length
  return { of, from, text: piece, chars: text.length, ...(next < text.length ? { next } : {}) }
}

function invalid(message: string): AppError {
  return new AppError('invalid', 'invalid_request', message)
}

/** Keeps the outcome if its answer does not have all of it. Forgets that of an earlier program. */
export async function keepOutcome(events: EventLog, sessionId: string, callId: string, state: RunState): Promise<void> {
  const id = keptOutcomeId(sessionId)
  const whole = wholeOutcome(state)
  const [known] = await events.read(id, { limit: 1 })
  if (known?.data.callId === callId) return
  if (known) await events.remove(id)
  if (isCut(whole)) await events.append(id, [{ type: 'outcome', data: { callId, ...whole } }])
}

/** Throws `unknown_run` if there is none. */
export async function keptOutcome(events: EventLog, sessionId: string): Promise<WholeOutcome> {
  const [known] = await events.read(keptOutcomeId(sessionId), { limit: 1 })
  const { value, logs } = known?.data ?? {}
  if (typeof value === 'string' && typeof logs === 'string') return { value, logs }
  const message =
    'Nothing is kept: the last program of this conversation returned and printed no more than its answer has.'
  throw new AppError('not-found', 'unknown_run', message)
}
