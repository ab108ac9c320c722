/** The events of choosing an approval mode and of deciding on a review. */
import type { CommandData } from '../../../contract/commands.ts'
import { type ApprovalMode, DEFAULT_MODE } from '../../../contract/effects/modes.ts'
import type { Transcript } from '../../../contract/transcript.ts'
import { AppError } from '../../lib/errors.ts'
import type { NewEvent } from '../../storage/event-log.ts'
import { refuseUnknown } from '../changes/changed-files.ts'
import { acceptedPart, planChanges, refuseUnlisted } from '../changes/plan-changes.ts'
import type { SessionManager } from '../sandboxes/session-manager.ts'
import type { ChatOptions } from '../turns/chat-options.ts'
import { reviewKey } from '../turns/turn-events.ts'
import { turnInProgress } from './new-turns.ts'

type ModeOptions = Pick<ChatOptions, 'mode' | 'network'>

/** The mode of a new session, unless it is the one of a log that names none. */
export function firstMode({ mode = DEFAULT_MODE }: ModeOptions): NewEvent[] {
  return mode === DEFAULT_MODE ? [] : [{ type: 'mode:selected', data: { mode } }]
}

/** Calls that are already waiting or running keep the mode of their step. No events if nothing changes. */
export function modeChange(transcript: Transcript, mode: ApprovalMode, { network }: ModeOptions): NewEvent[] {
  if (mode === transcript.mode) return []
  if (mode !== 'ask' && network !== 'none') {
    const message = `Sandboxes can reach the network "${network}", so a command that ran ahead could have effects that nobody can discard. Set SANDBOX_NETWORK to none to use this mode.`
    throw new AppError('conflict', 'mode_unavailable', message)
  }
  if (hasReview(transcript)) throw reviewOpen()
  return [{ type: 'mode:selected', data: { mode } }]
}

/** Whether changes are in a fork, or are about to be, that wait for a review. */
function hasReview({ mode, turnId, review, forkedTurn, unapplied }: Transcript): boolean {
  return review !== null || forkedTurn !== null || unapplied !== null || (mode === 'review' && turnId !== null)
}

export function reviewDecision(
  { review, turnId, entries }: Transcript,
  { comment, choices, seenConflicts, ...answer }: CommandData<'review:decide'>
): NewEvent {
  if (review?.reviewId !== answer.reviewId) throw reviewDecided()
  // The turn goes on in the same fork.
  if (turnId !== null) throw turnInProgress()
  if (answer.hash !== review.changes.hash) throw notAsShown()
  const chosen = { ...(choices && { choices }), ...(seenConflicts && { seenConflicts }) }
  const data = { ...answer, by: 'human', ...chosen, ...(comment && { comment }) }
  const opened = entries.findLast((entry) => entry.kind === 'review' && entry.reviewId === answer.reviewId)
  return { type: 'review:resolved', data, key: reviewKey(answer.reviewId, opened?.seq ?? 0) }
}

/** A turn may have begun and ended in the same fork since the decision was checked. Then it is stored, and does not count. */
export function checkCounted({ review }: Transcript, { reviewId, hash }: CommandData<'review:decide'>): void {
  if (review?.reviewId === reviewId && review.changes.hash !== hash) throw notAsShown()
}

function notAsShown(): AppError {
  return new AppError('conflict', 'stale', 'The changes are no longer those that you were shown; look again.')
}

export function reviewDecided(): AppError {
  return new AppError('conflict', 'already_decided', 'There is no such review, or someone has already decided it.')
}

function reviewOpen(): AppError {
  const message = 'Changes in the fork wait for a review: wait for the end of the turn, decide the review, then switch.'
  return new AppError('conflict', 'review_open', message)
}

/**
 * Throws `changes_conflict` if the workspace has changed one of the accepted files too and the person has not chosen a version, and
 * `stale` if they chose before they saw what is there now. It is checked again when the changes are applied.
 */
export async function checkChoices(
  sessions: Pick<SessionManager, 'openSaved'>,
  sessionId: string,
  changeId: string,
  {
    accept = 'all',
    choices,
    seenConflicts: seen = {}
  }: Partial<Pick<CommandData<'review:decide'>, 'accept' | 'choices' | 'seenConflicts'>>
): Promise<void> {
  if (accept === 'none') return
  const saved = await sessions.openSaved(sessionId, { brief: true })
  try {
    const set = saved.changeSets.get(changeId)
    if (set?.kind !== 'open') return
    refuseUnknown(set.changes, Object.keys(choices ?? {}))
    refuseUnlisted(saved.entries, set.changes, accept)
    planChanges(saved.entries, acceptedPart(saved.entries, set.changes, accept), { choices, seen })
  } finally {
    await saved.close()
  }
}
