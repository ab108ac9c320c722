import type { TurnEndReason } from '../../../contract/events.ts'
import type { AgentEvent } from '../../agent/model-step.ts'
import { AppError, isAppError, messageOf } from '../../lib/errors.ts'
import type { NewEvent } from '../../storage/event-log.ts'
import { resultOf } from '../sandboxes/session-events.ts'

/** A turn ends once: the second end is refused. */
export function endOf(turnId: string, reason: TurnEndReason): NewEvent {
  return { type: 'turn:end', data: { turnId, reason }, key: `end:${turnId}` }
}

/**
 * The key of a review's decision, so that each state of it is decided once. `seq` is that of its entry: if the review has grown since, it can
 * be decided again, because the decision about the earlier changes does not count.
 */
export function reviewKey(reviewId: string, seq: number): string {
  return `review:${reviewId}:${seq}`
}

/** A turn that one of its limits has ended. */
export function limitedTurn(turnId: string, reason: TurnEndReason): NewEvent[] {
  const message =
    reason === 'spending_limit'
      ? 'This session has used up its tokens; raise the limit to go on.'
      : 'The model took too many steps without finishing; say how to go on.'
  return [{ type: 'agent:error', data: { turnId, code: reason, message } }, endOf(turnId, reason)]
}

export function failedTurn(turnId: string, error: unknown): NewEvent[] {
  const internal = { code: 'internal', message: 'Something went wrong inside; see the log.' }
  const { code, message } = isAppError(error) ? error : internal
  return [{ type: 'agent:error', data: { turnId, code, message } }, endOf(turnId, 'error')]
}

/** `servers` are those that it is about; the page links to them. */
export function noticeOf(code: string, message: string, servers?: string[]): NewEvent {
  return { type: 'session:notice', data: { code, message, ...(servers && { servers }) } }
}

/** `key` is the key under which the step's answer is stored once. */
export function keyed(event: AgentEvent, { key, reasoningMs }: { key: string; reasoningMs: number }): NewEvent {
  if (event.type === 'agent:response')
    return { ...event, data: { ...event.data, ...(event.data.reasoning && { reasoningMs }) }, key }
  return event.type === 'turn:end' ? endOf(event.data.turnId, event.data.reason) : event
}

/** Why a step was aborted. */
export function cutOffBy({ reason }: AbortSignal): 'server' | 'stopped' {
  return isAppError(reason, 'server_stopped') ? 'server' : 'stopped'
}

export function notRun(callId: string, why: unknown): NewEvent {
  const content = [{ type: 'text', text: `It was not run: ${messageOf(why)}` }]
  return resultOf(callId, { isError: true, content })
}

/** A program that had not ended when its turn did. `left` says which of its calls had no answer. */
export function programStopped(callId: string, left: string[] = []): NewEvent {
  const text = ['The turn was stopped while this program ran or waited.', ...left].join('\n')
  const content = [{ type: 'text', text }]
  return resultOf(callId, { isError: true, content, interruptedBy: 'person' })
}

/** The reason for cancelling what runs in a turn when a person or anything else ends it. */
export function stopped(): AppError {
  return new AppError('cancelled', 'cancelled', 'The turn was stopped.')
}

/** The reason for cancelling what runs in a turn when this server stops. The turn stays open and continues at the next start. */
export function serverStopped(): AppError {
  return new AppError('unavailable', 'server_stopped', 'The server was stopped or restarted while this was running.')
}
