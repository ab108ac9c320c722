/**
 * Runs work in a session's fork, and applies its changes or not. Every change set is stored before anyone hears of it, and applied under its own
 * id: after a crash the same step can be repeated, and changes the workspace once or not at all.
 */
import type { ChangedFile, ChangeSummary } from '../../../../contract/effects/change-set.ts'
import type { VersionAbout } from '../../../../contract/effects/effect-replies.ts'
import type { EventData } from '../../../../contract/events.ts'
import { boundContent } from '../../../calls/bound-content.ts'
import { AppError, isAppError } from '../../../lib/errors.ts'
import { plural } from '../../../lib/plural.ts'
import type { ToolResult } from '../../../sandbox/port.ts'
import {
  type Checkpoint,
  isSameEntry,
  type StoredChange,
  type StoredChangeSet
} from '../../../storage/checkpoint-store.ts'
import { filesOf, summaryOf } from '../../changes/changed-files.ts'
import { acceptedPart, type Resolution } from '../../changes/plan-changes.ts'
import type { LiveSession } from '../live-session.ts'
import { isOwnershipError } from '../ownership-error.ts'
import { mayPassLater } from '../restoring/changes-unsaved.ts'
import { journal, moreOf, settled, TOOL_TIMEOUT_MS, type ToolCall } from '../run-sandbox-tool.ts'
import { decidedParts } from './call-parts.ts'
import { aboutOf, CALL, dropSets, endProcesses, openSets, REVIEW, storeChanges } from './fork-changes.ts'
import { type Fork, hasLeftRunning } from './session-fork.ts'

export type Previewed = Pick<EventData<'tool:previewed'>, 'changes' | 'result' | 'durationMs' | 'leftRunning'>

interface StoredReview {
  reviewId: string
  changes: ChangeSummary
}

interface AppliedReview {
  changes: ChangeSummary | undefined
  /** All files of the review; undefined if it was applied before a crash. */
  files: ChangedFile[] | undefined
}

/** The decision on a review. */
type ReviewChoice = Omit<EventData<'review:resolved'>, 'comment'>

export interface ForkedWork {
  /** The calls with a preview in the open fork, or with stored changes that wait for a decision, as far as the sandbox is open here. */
  readonly previewed: string[]
  /** Runs a call in a fork and stores what it did as an open change set. */
  preview(call: ToolCall): Promise<Previewed>
  /**
   * Puts the changes of a preview into the workspace, if they are those that were shown. Can be repeated. Returns undefined if there
   * were none.
   */
  keep(callId: string, shown: ChangeSummary | undefined, resolution?: Resolution): Promise<ChangeSummary | undefined>
  /** Ends the fork, and forgets the changes of previews that were not kept. */
  discard(): Promise<void>
  /** Runs a call of a turn that is reviewed later, and records it in the event log. */
  run(call: ToolCall, turnId: string): Promise<ToolResult>
  /** The changes that wait for a review; undefined if there are none. */
  review(): Promise<StoredReview | undefined>
  /** Puts the accepted part of a review into the workspace and forgets the rest. Can be repeated. */
  applyReview(choice: ReviewChoice): Promise<AppliedReview>
  /** Offers the changes of a review that could not be applied once more, as another review. */
  reopenReview(reviewId: string): Promise<StoredReview | undefined>
}

export function forkedWork(session: LiveSession, checkRunning: () => void): ForkedWork {
  const guarded = async <T>(work: () => Promise<T>): Promise<T> => {
    checkRunning()
    return work()
  }
  return {
    get previewed() {
      const { fork, sandbox } = session
      const stored = sandbox.state === 'running' ? openSets(sandbox.saved, CALL) : []
      return [fork.purpose ?? '', ...stored].flatMap((id) => (id.startsWith(CALL) ? [id.slice(CALL.length)] : []))
    },
    preview: (call) => guarded(() => preview(session, call)),
    keep: (callId, shown, resolution) => guarded(() => keep(session, callId, shown, resolution)),
    discard: () => discard(session),
    run: (call, turnId) => guarded(() => runForReview(session, call, turnId)),
    review: () => guarded(() => storedReview(session)),
    applyReview: (choice) => guarded(() => applyReview(session, choice)),
    reopenReview: (reviewId) => guarded(() => reopenReview(session, reviewId))
  }
}

async function preview(session: LiveSession, { callId, times: _, name, args, ...rest }: ToolCall): Promise<Previewed> {
  const id = `${CALL}${callId}`
  // It has run before, and was edited or could not be kept. Nothing of that may be in what it does now.
  if (session.fork.purpose === id) await session.fork.close()
  try {
    const fork = await openFork(session, () => id, rest.signal)
    const began = performance.now()
    const result = await fork.call(name, args, { ...rest, timeoutMs: TOOL_TIMEOUT_MS })
    const durationMs = Math.round(performance.now() - began)
    checkTampered(fork)
    rest.signal?.throwIfAborted()
    // Nothing may change after it was shown: that would be lost when the person keeps it.
    const isEnded = await fork.endProcesses()
    const changes = await storeChanges(session, fork, { by: 'call', callId })
    if (!isEnded) await session.fork.close()
    const content = boundContent(await session.events.keepImages(result.content))
    const shown = { isError: result.isError === true, content: [...content], ...moreOf(name, result) }
    return { changes, result: shown, durationMs, ...leftRunning(result) }
  } catch (error) {
    // It may have changed files that nobody will see.
    await session.fork.close()
    throw error
  }
}

async function keep(
  session: LiveSession,
  callId: string,
  shown: ChangeSummary | undefined,
  resolution: Resolution = {}
): Promise<ChangeSummary | undefined> {
  const id = `${CALL}${callId}`
  await session.openSandbox()
  const set = session.sandbox.saved.changeSets.get(id)
  if (!shown || (!set && shown.total === 0)) return undefined
  if (!set) throw notAsShown()
  checkShown(set, shown.hash)
  return apply(session, set, { by: 'call', callId }, resolution)
}

async function discard(session: LiveSession): Promise<void> {
  await session.fork.close()
  if (session.sandbox.state !== 'running') return
  await session.sandbox.exclusively((checkpoint) => dropSets(checkpoint, openSets(checkpoint, CALL)))
}

async function runForReview(session: LiveSession, call: ToolCall, turnId: string): Promise<ToolResult> {
  const { callId, times = 1, name, args, settle, ...rest } = call
  const fork = await openFork(
    session,
    (checkpoint) => openSets(checkpoint, REVIEW)[0] ?? `${REVIEW}r-${turnId}`,
    rest.signal
  )
  const about = aboutOf(fork)
  const run = async () => {
    const result = await fork.call(name, args, { ...rest, timeoutMs: TOOL_TIMEOUT_MS }).catch(async (error) => {
      // Files that it has written until then are reviewed too, so they are stored before the review opens.
      if (fork.connection.isOpen) await storeChanges(session, fork, about, callId).catch(() => session.fork.close())
      throw error
    })
    if (fork.connection.isTampered) await session.fork.close()
    checkTampered(fork)
    const changes = await storeChanges(session, fork, about, callId)
    const made = { isForked: true as const, ...(changes.total > 0 && { changes }), ...leftRunning(result) }
    return { ...result, more: { ...moreOf(name, result), ...made } }
  }
  return journal(session, callId, settled(run, settle), { times })
}

function leftRunning(result: ToolResult): { leftRunning?: true } {
  return hasLeftRunning(result) ? { leftRunning: true } : {}
}

async function storedReview(session: LiveSession): Promise<StoredReview | undefined> {
  await session.openSandbox()
  await endProcesses(session)
  const { saved } = session.sandbox
  const [id] = openSets(saved, REVIEW)
  const set = id === undefined ? undefined : saved.changeSets.get(id)
  // An empty fork is of no use.
  if (!set) await session.fork.close()
  return set && { reviewId: set.id.slice(REVIEW.length), changes: summaryOf(set) }
}

async function applyReview(session: LiveSession, choice: ReviewChoice): Promise<AppliedReview> {
  const { reviewId, hash, accept, choices, seenConflicts: seen, by } = choice
  const id = `${REVIEW}${reviewId}`
  await session.openSandbox()
  const set = session.sandbox.saved.changeSets.get(id)
  if (accept !== 'all') await session.fork.close()
  if (!set) return { changes: undefined, files: undefined }
  // A rewind discards everything, also what a call has changed that ran until then.
  if (by !== 'cancel') checkShown(set, hash)
  const files = set.kind === 'open' ? filesOf(set.changes) : undefined
  const accepted = files ? acceptedPart(session.sandbox.saved.entries, set.changes, accept) : set.changes
  const about = { by: 'review', reviewId } as const
  return { changes: await apply(session, { ...set, changes: accepted }, about, { choices, seen }, set.changes), files }
}

async function reopenReview(session: LiveSession, reviewId: string): Promise<StoredReview | undefined> {
  await session.openSandbox()
  await session.fork.close()
  await session.sandbox.exclusively(async (checkpoint) => {
    const set = checkpoint.changeSets.get(`${REVIEW}${reviewId}`)
    if (set?.kind !== 'open') return
    const again: StoredChangeSet = { ...set, id: `${REVIEW}${reviewId}+`, at: Date.now() }
    await checkpoint.commit({ put: [], deleted: [], drop: [set.id], keep: [again] })
  })
  return storedReview(session)
}

/** A set that is a version already was checked before a crash. */
function checkShown(set: StoredChangeSet, hash: string): void {
  if (set.kind === 'open' && summaryOf(set).hash !== hash) throw notAsShown()
}

function notAsShown(): AppError {
  return new AppError('conflict', 'stale', 'The changes are no longer those that you were shown; look again.')
}

/**
 * Applies an open set under its own id, which makes it a version. One that is a version already was applied before a crash. `shown` has
 * all changes of a review, also those that were not accepted.
 */
async function apply(
  session: LiveSession,
  { id, kind, changes }: StoredChangeSet,
  about: VersionAbout,
  { choices, seen = {} }: Resolution,
  shown: readonly StoredChange[] = []
): Promise<ChangeSummary | undefined> {
  const { sandbox } = session
  const known = kind === 'version' ? sandbox.saved.changeSets.get(id) : undefined
  const beside = (made: StoredChangeSet | null) => decidedParts(sandbox.saved.changeSets, shown, made)
  const input = { changes, resolution: { choices, seen }, version: { id, about }, beside }
  const version = known ?? (await sandbox.applyChanges(input).catch((error) => throwPart(sandbox, changes, error)))
  if (!version) await sandbox.exclusively((checkpoint) => dropSets(checkpoint, [id]))
  session.fork.settle(id)
  return version ? summaryOf(version) : undefined
}

/** An attempt before a crash may have written a part. Then nobody may be told that nothing is in the workspace. */
function throwPart({ state, saved }: LiveSession['sandbox'], changes: readonly StoredChange[], why: unknown): never {
  const isRefused = isAppError(why) && !isOwnershipError(why) && !mayPassLater(why)
  if (!isRefused || state !== 'running') throw why
  const isThere = ({ path, before, after }: StoredChange) =>
    isSameEntry(saved.entries.get(path) ?? null, after) && !isSameEntry(before, after)
  const there = changes.filter(isThere)
  const [first] = there
  if (!first) throw why
  const message = `${plural(there.length, 'change')} of ${changes.length} is there already (${first.path.slice(0, 100)}): ${why.message}`
  throw new AppError('conflict', 'changes_in_part', message, { cause: why })
}

/** A fork of the workspace as it is now, with what an earlier fork for the same review has changed. */
async function openFork(
  session: LiveSession,
  purposeOf: (checkpoint: Checkpoint) => string,
  signal: AbortSignal | undefined
): Promise<Fork> {
  session.fork.checkAllowed()
  await session.openForCall(signal)
  await endProcesses(session)
  return session.locked(async () => {
    const { sandbox, epoch } = session
    const unsaved = await sandbox.checkpoint()
    if (unsaved !== undefined) throw new AppError('unavailable', 'fork_failed', unsaved)
    const purpose = purposeOf(sandbox.saved)
    const open = purpose.startsWith(REVIEW) ? sandbox.saved.changeSets.get(purpose) : undefined
    signal?.throwIfAborted()
    const request = { epoch, purpose, changes: open?.changes ?? [], checkpoint: () => session.sandbox.saved }
    const fork = await session.fork.open(request)
    signal?.throwIfAborted()
    return fork
  })
}

function checkTampered({ connection }: Fork): void {
  if (!connection.isTampered) return
  throw new AppError(
    'unavailable',
    'sandbox_tampered',
    "The command imitated the sandbox's own server; the fork was ended."
  )
}
