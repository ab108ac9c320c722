/** The events of a decision on a call that waits for approval: by a person, by "Always allow", or by the end of its turn. */

import { waitsForPerson } from '../../../contract/call-entry.ts'
import type { CommandData } from '../../../contract/commands.ts'
import type { EventData } from '../../../contract/events.ts'
import { otherReads } from '../../../contract/programs.ts'
import { type CallEntry, callOf, coveredCalls, type Transcript } from '../../../contract/transcript.ts'
import { approvalHash } from '../../calls/offered-tool.ts'
import { AppError } from '../../lib/errors.ts'
import type { ApprovalPolicy } from '../../policy/approval-policy.ts'
import type { NewEvent } from '../../storage/event-log.ts'
import { onceKey } from '../sandboxes/session-events.ts'
import { editedTarget, MAX_TIMES_ASKED, timesAsked } from '../turns/call-targets.ts'
import { noticeOf } from '../turns/turn-events.ts'

function resolution(call: CallEntry, decision: Omit<EventData<'tool:approval_resolved'>, 'callId'>): NewEvent {
  const { callId } = call
  const key = onceKey('decision', callId, timesAsked(call))
  return { type: 'tool:approval_resolved', data: { callId, ...decision }, key }
}

export function decisionOn(call: CallEntry, answer: CommandData<'tool:approval'>): NewEvent {
  const { approved, args, reason, choices, seen, seenConflicts } = answer
  checkShown(call, answer)
  if (args && !approved) throw new AppError('invalid', 'edit_of_rejection', 'Edited arguments need an approval.')
  const target = args && editedTarget(call, args, answer.target)
  const edit = { ...(args && { args }), ...(target && { target }), ...(seen && approved && !args && { seen }) }
  const always = approved && answer.remember ? { always: true as const } : {}
  const reads = approved && answer.reads && call.program?.isRead ? { reads: true as const } : {}
  const chosen = approved && choices ? { choices, ...(seenConflicts && { seenConflicts }) } : {}
  return resolution(call, {
    approved,
    by: 'human',
    ...(reason ? { reason } : {}),
    ...always,
    ...reads,
    ...edit,
    ...chosen
  })
}

/**
 * The event for edited arguments of a call that has run in a fork: that run is discarded, and the call runs in a new fork before anyone
 * decides. It has the key of a decision, so that of an edit and a decision at the same moment one counts.
 */
export function editedPreview(sessionId: string, call: CallEntry, answer: CommandData<'tool:approval'>): NewEvent {
  checkShown(call, answer)
  const { callId, turnId, server, name, definition, queuePosition, totalInQueue } = call
  const { approved, args = {} } = answer
  const times = timesAsked(call) + 1
  if (!approved) throw new AppError('invalid', 'edit_of_rejection', 'Edited arguments need an approval.')
  if (times > MAX_TIMES_ASKED)
    throw new AppError('conflict', 'edit_of_preview', 'This call has run in a fork too often: keep or discard it.')
  const hash = approvalHash({ sessionId, callId, definition, args })
  const asked = { callId, turnId, server, name, args, definition, hash, queuePosition, totalInQueue }
  const again = { times, reason: 'You edited this call. It ran in a fork again.', isEdited: true }
  return {
    type: 'tool:approval_required',
    data: { ...asked, ahead: 'preview', again },
    key: onceKey('decision', callId, timesAsked(call))
  }
}

/** A decision on a preview must name what was shown. One on a plain card may leave that out. */
function checkShown(call: CallEntry, { hash }: CommandData<'tool:approval'>): void {
  const { preview } = call
  if (!waitsForPerson(call))
    throw new AppError('conflict', 'preview_running', 'The call is still running in a fork; decide when it has ended.')
  if (preview ? hash !== preview.hash : hash !== undefined && hash !== call.hash)
    throw new AppError('conflict', 'stale', 'This decision is for an earlier version of the card; look again.')
}

/** The events of "Always allow" besides the decision itself, with the decisions on the calls that it covers. */
export function remembered(transcript: Transcript, call: CallEntry, policy: ApprovalPolicy): NewEvent[] {
  const { server, name, definition } = call
  // Only for a tool that still needs approval: if a rule now denies it, its calls keep their cards.
  const covered = policy(server, name) === 'deny' ? [] : coveredCalls(transcript, call)
  return [
    { type: 'tool:allowed', data: { server, name, definition } },
    ...covered.map((each) => resolution(each, { approved: true, by: 'session' }))
  ]
}

/** The decisions on the other waiting reads of a program. */
export function approvedReads(transcript: Transcript, call: CallEntry): NewEvent[] {
  if (!call.program?.isRead) throw new AppError('invalid', 'invalid_request', 'This call is no read of a program.')
  return otherReads(transcript.calls, call).map((each) => resolution(each, { approved: true, by: 'session' }))
}

export function cancellations(calls: CallEntry[], why?: string): NewEvent[] {
  const decision = { approved: false, by: 'cancel' as const, ...(why !== undefined && { reason: why }) }
  return calls.map((call) => resolution(call, decision))
}

/** Shown in every tab, so that no waiting card disappears without explanation. */
export function cancelledNotice(cancelled: number, why: string): NewEvent[] {
  if (cancelled === 0) return []
  const calls = cancelled === 1 ? '1 call that waited' : `${cancelled} calls that waited`
  const message = `${why} This cancelled ${calls} for approval.`
  return [noticeOf('approvals_cancelled', message)]
}

function approvalsWaiting(waiting: number): AppError {
  const calls = waiting === 1 ? '1 call waits' : `${waiting} calls wait`
  const message = `${calls} for approval, and switching the model would cancel that. Look at the conversation, then switch again.`
  return new AppError('conflict', 'approvals_waiting', message)
}

export function requireWaitingCall(transcript: Transcript, callId: string): CallEntry {
  const call = callOf(transcript, callId)
  if (!call) throw new AppError('not-found', 'unknown_call', 'There is no such call in this session.')
  if (call.decision) throw new AppError('conflict', 'already_decided', 'Someone has already decided this call.')
  return call
}

export type SwitchChoice = Omit<CommandData<'model:select'>, 'model'>

/** The events of a switch. Throws if it cancels more approvals than the person knows of. */
export function switchedModel(
  { model, history = 'fresh', maxCancelled = Number.POSITIVE_INFINITY }: SwitchChoice & { model: string },
  cancelled: number,
  why: string
): NewEvent[] {
  if (cancelled > maxCancelled) throw approvalsWaiting(cancelled)
  return [...cancelledNotice(cancelled, why), { type: 'model:selected', data: { model, history } }]
}
