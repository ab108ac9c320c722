import type { TurnEndReason } from '../../contract/events.ts'
import type { CallEntry, Transcript } from '../../contract/transcript.ts'

export type NextAction =
  | { type: 'idle' }
  /** Undecided or running calls: the turn goes on when something is appended. */
  | { type: 'wait' }
  | { type: 'run'; calls: CallEntry[] }
  | { type: 'step' }
  | { type: 'end'; reason: TurnEndReason }

export interface TurnLimits {
  maxSteps: number
  /** Tokens of the whole session; undefined is no limit. */
  maxSessionTokens?: number | undefined
}

/**
 * What a turn needs next, read from the log alone: nothing waits in memory, so whoever looks, whenever, comes to the same
 * answer. A call is run when it was approved and never started; one that started and has no result is somebody's, or unknown.
 */
export function nextAction(transcript: Transcript, stepsInTurn: number, limits: TurnLimits): NextAction {
  const { turnId, calls, usage, raisedLimit } = transcript
  if (turnId === null) return { type: 'idle' }
  const open = Object.values(calls).filter((call) => call.turnId === turnId && !isFinished(call))
  const runnable = open.filter((call) => call.decision?.approved && call.startedAt === undefined)
  if (runnable.length > 0) return { type: 'run', calls: runnable }
  if (open.length > 0) return { type: 'wait' }
  if (stepsInTurn >= limits.maxSteps) return { type: 'end', reason: 'step_limit' }
  const limit = Math.max(limits.maxSessionTokens ?? Number.POSITIVE_INFINITY, raisedLimit)
  if (usage.inputTokens + usage.outputTokens >= limit) return { type: 'end', reason: 'spending_limit' }
  return { type: 'step' }
}

function isFinished(call: CallEntry): boolean {
  return call.result !== undefined || call.decision?.approved === false
}
