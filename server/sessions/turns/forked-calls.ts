/** The calls of a turn that run in a fork: what a driver does with previews and reviews, and what it records about them. */
import { createHash } from 'node:crypto'
import { type ChangeSummary, isChosen, MAX_LISTED_FILES, namedIn } from '../../../contract/effects/change-set.ts'
import { hasKeptBesides, hasTakenBack } from '../../../contract/effects/taken-back.ts'
import type { EventData } from '../../../contract/events.ts'
import type { CallEntry, Transcript } from '../../../contract/transcript.ts'
import { approvalHash } from '../../calls/offered-tool.ts'
import { canonicalJson } from '../../lib/canonical-json.ts'
import { isAppError, messageOf } from '../../lib/errors.ts'
import type { NewEvent } from '../../storage/event-log.ts'
import { isOwnershipError } from '../sandboxes/ownership-error.ts'
import { onceKey, resultOf, unknownOutcome } from '../sandboxes/session-events.ts'
import type { HeldSession } from '../sandboxes/session-manager.ts'
import { MAX_TIMES_ASKED, type ResolveOptions, timesAsked, withTargets } from './call-targets.ts'
import type { ChatDeps } from './chat-options.ts'
import { type ApplyDeps, failedApply } from './failed-apply.ts'
import type { RunInput } from './toolbox.ts'
import { notRun, reviewKey } from './turn-events.ts'

type Decision = EventData<'review:resolved'>

const MAX_REASON = 1000
const NO_FORK = new Set(['too_many_sessions', 'too_many_sandboxes_of_owner', 'fork_failed'])

/** Runs a call in a fork. If that is impossible, the call waits for approval as in the mode `ask`. No events if the turn was stopped. */
export async function previewCall(
  { toolbox, checkQuota, logger }: ChatDeps,
  hold: HeldSession,
  input: RunInput
): Promise<NewEvent[]> {
  const { call, sessionId, signal } = input
  const { callId } = call
  try {
    await checkQuota(sessionId)
    const previewed = await toolbox.preview(hold, input)
    const bound = canonicalJson([call.hash, previewed.changes.hash, previewed.result, previewed.leftRunning === true])
    const data = { callId, ...previewed, hash: createHash('sha256').update(bound).digest('hex') }
    return [{ type: 'tool:previewed', data, key: onceKey('previewed', callId, timesAsked(call)) }]
  } catch (error) {
    if (isOwnershipError(error)) throw error
    if (signal.aborted) return []
    const { code, message } = isAppError(error) ? error : { code: 'internal', message: messageOf(error) }
    logger.warn({ sessionId, callId, code, err: error }, `A call got no fork: ${message}`)
    const data = { callId, code, reason: message.slice(0, MAX_REASON) }
    return [{ type: 'tool:preview_refused', data, key: onceKey('previewed', callId, timesAsked(call)) }]
  }
}

/** Puts a preview into the workspace. It may be repeated until its result is recorded, so its start and its end are one append. */
export async function keepCall(
  deps: ApplyDeps,
  sessionId: string,
  hold: HeldSession,
  call: CallEntry
): Promise<NewEvent[]> {
  const { callId, preview, decision } = call
  try {
    const changes = await hold.forks.keep(callId, preview?.changes, {
      choices: decision?.choices,
      seen: decision?.seenConflicts
    })
    const { ending, replaced, ...result } = preview?.result ?? { isError: true, content: [] }
    const more = { ...(ending !== undefined && { ending }), ...(replaced !== undefined && { replaced }) }
    const data = { ...result, ...(more as Pick<EventData<'tool:result'>, 'ending' | 'replaced'>) }
    const started = { type: 'tool:started', data: { callId }, key: onceKey('started', callId, timesAsked(call)) }
    const { durationMs, leftRunning } = preview ?? {}
    const ran = { ...(durationMs !== undefined && { durationMs }), ...(leftRunning && { leftRunning }) }
    return [started, resultOf(callId, { ...data, ...ran, ...(changes && { changes }) })]
  } catch (error) {
    const isRefused = await failedApply(deps, { sessionId, epoch: hold.epoch, id: callId }, error)
    if (isRefused) return [previewAgain(sessionId, call, error)]
    // Asking again would lead to a second run of a call whose changes may be there. The open set has no use any more.
    await hold.forks.discard().catch(() => {})
    return [unknownOutcome(callId, `The changes that were kept are not all in the workspace. ${messageOf(error)}`)]
  }
}

/** The changes could not be put into the workspace, and nothing was: the call runs in a fork of the workspace as it is now. */
function previewAgain(sessionId: string, call: CallEntry, error: unknown): NewEvent {
  const { callId, turnId, server, name, args, definition, queuePosition, totalInQueue } = call
  const times = timesAsked(call) + 1
  if (times > MAX_TIMES_ASKED) return notRun(callId, error)
  const hash = approvalHash({ sessionId, callId, definition, args })
  const reason = `You kept the changes of this call, but they are not in the workspace: ${messageOf(error)}`.slice(
    0,
    MAX_REASON
  )
  return {
    type: 'tool:approval_required',
    data: {
      ...{ callId, turnId, server, name, args, definition, hash, queuePosition, totalInQueue },
      ahead: 'preview',
      again: { times, reason }
    },
    key: `again-${times}:${callId}`
  }
}

/** Whether a call of a reviewed turn may run in the workspace instead, because it got no fork. */
export function isForkRefused({ ahead }: CallEntry, error: unknown): boolean {
  return ahead === 'review' && isAppError(error) && NO_FORK.has(error.code)
}

/** A call of a reviewed turn could not get a fork: it waits for approval, and then runs in the workspace. */
export async function askedInstead(look: ResolveOptions, call: CallEntry, error: unknown): Promise<NewEvent> {
  const { sessionId } = look
  const { callId, turnId, server, name, args, definition, queuePosition, totalInQueue, program } = call
  const times = timesAsked(call) + 1
  const hash = approvalHash({ sessionId, callId, definition, args })
  const reason = `It could not run in a fork: ${messageOf(error)}`.slice(0, MAX_REASON)
  const asked = { callId, turnId, server, name, args, definition, hash, queuePosition, totalInQueue }
  const data = { ...asked, again: { times, reason }, ...(program && { program }) }
  const event = { type: 'tool:approval_required' as const, data }
  const [shown = event] = await withTargets([event], look)
  return { ...shown, key: `again-${times}:${callId}` }
}

/**
 * Opens the review of a turn that has ended. Without changes, it only closes the fork. If the person took calls of the turn back, all that
 * the fork has changed is discarded. The model is told only if it still knows of some of these changes.
 */
export async function openReview(hold: HeldSession, transcript: Transcript): Promise<NewEvent[]> {
  const { forkedTurn, review, seq } = transcript
  const turnId = forkedTurn ?? review?.turnId ?? ''
  const stored = await hold.forks.review()
  const reviewId = stored?.reviewId ?? review?.reviewId ?? `r-${turnId}`
  const none = { changeId: `review:${reviewId}`, hash: 'none', total: 0, files: [] }
  const opened = (changes: ChangeSummary) => {
    return { type: 'review:opened', data: { reviewId, turnId, changes }, key: `review-opened:${turnId}:${seq}` }
  }
  if (!stored) return [opened(none)]
  if (!hasTakenBack(transcript)) return [opened(stored.changes)]
  const discarded = { reviewId, hash: stored.changes.hash, accept: 'none', by: 'cancel' } as const
  if (hasKeptBesides(transcript))
    return [opened(stored.changes), { type: 'review:resolved', data: discarded, key: reviewKey(reviewId, seq) }]
  await hold.forks.applyReview(discarded)
  return [opened(none)]
}

/** Applies a decided review. If it is refused, its changes are offered again in another review. */
export async function settleReview(
  deps: ApplyDeps,
  sessionId: string,
  hold: HeldSession,
  { entries, unapplied }: Transcript
): Promise<NewEvent[]> {
  const entry = entries.findLast((each) => each.kind === 'review' && each.reviewId === unapplied)
  if (entry?.kind !== 'review' || !entry.decision)
    return [{ type: 'review:applied', data: { reviewId: unapplied, rejected: [], rejectedTotal: 0 } }]
  const { reviewId, decision, changes: shown } = entry
  const key = `review-applied:${reviewId}`
  try {
    const { changes, files } = await hold.forks.applyReview({ reviewId, ...decision })
    const all = files ? { files, total: files.length } : shown
    const data = { reviewId, ...(changes && { changes }), ...rejectedOf(all, { reviewId, ...decision }) }
    return [{ type: 'review:applied', data, key }]
  } catch (error) {
    await failedApply(deps, { sessionId, epoch: hold.epoch, id: reviewId }, error)
    const again = await hold.forks.reopenReview(reviewId)
    const problem = messageOf(error).slice(0, MAX_REASON)
    const rejected = rejectedOf(shown, { ...decision, reviewId, accept: 'none' })
    return [
      { type: 'review:applied', data: { reviewId, ...rejected, problem }, key },
      ...(again
        ? [{ type: 'review:opened', data: { ...again, turnId: reviewId }, key: `review-opened:${again.reviewId}` }]
        : [])
    ]
  }
}

/** `files` can be the first ones only. */
function rejectedOf(
  { files, total }: Pick<ChangeSummary, 'files' | 'total'>,
  { accept, choices = {} }: Decision
): Pick<EventData<'review:applied'>, 'rejected' | 'rejectedTotal'> {
  const isAccepted = isChosen(accept)
  const left = Object.keys(choices).filter((path) => choices[path] === 'workspace')
  const listed = files.filter(({ path }) => choices[path] === 'workspace' || !isAccepted(path))
  const named = accept === 'all' || Array.isArray(accept) ? left : [...left, ...namedIn(accept)]
  const rejected = [...new Set([...listed.map(({ path }) => path), ...named])]
  const count = accept === 'none' ? total : Array.isArray(accept) ? total - accept.length + left.length : 0
  const isWhole = files.length === total
  const rejectedTotal = isWhole ? listed.length : Math.min(total, Math.max(rejected.length, count))
  return { rejected: rejected.slice(0, MAX_LISTED_FILES), rejectedTotal }
}
