import { waitsForPerson } from '../../contract/call-entry.ts'
import { hasTakenBack } from '../../contract/effects/taken-back.ts'
import type { TurnEndReason } from '../../contract/events.ts'
import { WORKSPACE } from '../../contract/own-sources.ts'
import { isProgram, isProgramWaiting } from '../../contract/programs.ts'
import type { CallEntry, Transcript } from '../../contract/transcript.ts'

export type NextAction =
  | { type: 'idle' }
  /** Calls are undecided or running: the turn continues when an event is appended. */
  | { type: 'wait' }
  | { type: 'run'; calls: CallEntry[] }
  | { type: 'step' }
  /** The turn is over, and what it changed in a fork is to be reviewed; or it was taken back, and that is to be discarded. */
  | { type: 'open-review' }
  /** A review was decided and is to be applied. */
  | { type: 'settle-review' }
  | { type: 'end'; reason: TurnEndReason }

export interface TurnLimits {
  maxSteps: number
  /** Token limit for the whole session; undefined means no limit. */
  maxSessionTokens?: number | undefined
}

/**
 * Decides what a turn needs next, from the log alone. Nothing waits in memory, so every instance comes to the same result at any
 * time. A call runs if it was approved and never started. A call that started and has no result is running elsewhere, or its
 * outcome is unknown. A program that has started continues from its log, unless it only waits for a person. It makes its calls itself.
 */
export function nextAction(transcript: Transcript, stepsInTurn: number, limits: TurnLimits): NextAction {
  const { turnId, calls, usage, raisedLimit, forkedTurn, unapplied } = transcript
  if (unapplied !== null) return { type: 'settle-review' }
  // Before the next call: nothing of it may run on what was taken back.
  if (hasTakenBack(transcript)) return { type: 'open-review' }
  const keptEarlier = Object.values(calls).filter((call) => call.turnId !== turnId && isKept(call))
  if (turnId === null && keptEarlier.length === 0) return { type: forkedTurn === null ? 'idle' : 'open-review' }
  const open = Object.values(calls).filter((call) => call.turnId === turnId && !call.program && !isFinished(call))
  const inSandbox = nextInSandbox([...keptEarlier, ...inOrder(open)], calls)
  const runnable = [...inSandbox, ...open.filter(isOutside).filter(isApproved)]
  if (runnable.length > 0) return { type: 'run', calls: runnable }
  if (open.length > 0) return { type: 'wait' }
  if (stepsInTurn >= limits.maxSteps) return { type: 'end', reason: 'step_limit' }
  const limit = Math.max(limits.maxSessionTokens ?? Number.POSITIVE_INFINITY, raisedLimit)
  if (usage.inputTokens + usage.outputTokens >= limit) return { type: 'end', reason: 'spending_limit' }
  return { type: 'step' }
}

/** All open calls of a turn are of the same step. Ids don't tell the order: a key that is a number comes first in an object. */
function inOrder(open: CallEntry[]): CallEntry[] {
  return open.filter((call) => !isOutside(call)).sort((a, b) => a.queuePosition - b.queuePosition)
}

/**
 * The calls to the sandbox run one after another, in the order of their step: they work on the same files. The next one starts when
 * the one before it is decided and over, so one that waits for a person holds back those after it. Programs work on these files too.
 */
function nextInSandbox([first]: CallEntry[], calls: Transcript['calls']): CallEntry[] {
  if (!first) return []
  if (isProgram(first)) return first.decision?.approved && !isProgramWaiting(calls, first.callId) ? [first] : []
  const isPreviewDue = first.ahead === 'preview' && !first.decision && !waitsForPerson(first)
  return isPreviewDue || isApproved(first) || isKept(first) ? [first] : []
}

function isOutside(call: CallEntry): boolean {
  return call.server !== WORKSPACE && !isProgram(call)
}

function isApproved({ decision, startedAt }: CallEntry): boolean {
  return decision?.approved === true && startedAt === undefined
}

/** The person kept what it did in a fork. That may be in the workspace already, so it is done even if the turn is over by now. */
function isKept({ preview, decision, result }: CallEntry): boolean {
  return preview !== undefined && decision?.approved === true && result === undefined
}

function isFinished(call: CallEntry): boolean {
  return call.result !== undefined || call.decision?.approved === false
}

/**
 * Calls without a result that don't run here (`ours`): started elsewhere in this turn, approved in a turn that is over, or programs
 * that a turn has left behind.
 */
export function strayCalls({ calls, turnId }: Transcript, ours: { has(callId: string): boolean }) {
  const open = Object.values(calls).filter((call) => !call.result && !ours.has(call.callId))
  return {
    startedElsewhere: open.filter(
      (call) => call.turnId === turnId && call.startedAt !== undefined && !isOfProgram(call)
    ),
    leftPrograms: open.filter((call) => call.turnId !== turnId && call.startedAt !== undefined && isOfProgram(call)),
    neverRun: open.filter(
      (call) =>
        call.turnId !== turnId && call.startedAt === undefined && call.decision?.approved === true && !isKept(call)
    )
  }
}

/** A program, or a call that it makes. The program's own log says more about them than the session's log. */
function isOfProgram(call: CallEntry): boolean {
  return isProgram(call) || call.program !== undefined
}
