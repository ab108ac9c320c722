import type { TurnEndReason } from '../../contract/events.ts'
import type { CallEntry, Transcript } from '../../contract/transcript.ts'

export type NextAction =
  | { type: 'idle' }
  /** Calls are undecided or running: the turn continues when an event is appended. */
  | { type: 'wait' }
  | { type: 'run'; calls: CallEntry[] }
  | { type: 'step' }
  | { type: 'end'; reason: TurnEndReason }

export interface TurnLimits {
  maxSteps: number
  /** Token limit for the whole session; undefined means no limit. */
  maxSessionTokens?: number | undefined
}

/**
 * Decides what a turn needs next, from the log alone. Nothing waits in memory, so every instance comes to the same result at any
 * time. A call runs if it was approved and never started. A call that started and has no result is running elsewhere, or its
 * outcome is unknown.
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

/** Calls without a result that don't run here (`ours`): started elsewhere in this turn, or approved in a turn that is over. */
export function strayCalls({ calls, turnId }: Transcript, ours: { has(callId: string): boolean }) {
  const open = Object.values(calls).filter((call) => !call.result && !ours.has(call.callId))
  return {
    startedElsewhere: open.filter((call) => call.turnId === turnId && call.startedAt !== undefined),
    neverRun: open.filter(
      (call) => call.turnId !== turnId && call.startedAt === undefined && call.decision?.approved === true
    )
  }
}
