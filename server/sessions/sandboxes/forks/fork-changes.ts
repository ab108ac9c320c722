/** Stores what a fork has changed as an open change set, and ends what still changes it before somebody decides. */
import type { ChangeSummary } from '../../../../contract/effects/change-set.ts'
import type { VersionAbout } from '../../../../contract/effects/effect-replies.ts'
import type { Checkpoint, StoredChange, StoredChangeSet } from '../../../storage/checkpoint-store.ts'
import { leaseLost } from '../../../storage/store-errors.ts'
import { summaryOf } from '../../changes/changed-files.ts'
import { linkRenames } from '../../changes/link-renames.ts'
import { isOwnershipError } from '../ownership-error.ts'
import { notKeptText } from '../restoring/not-kept-text.ts'
import type { SessionEvents } from '../session-events.ts'
import type { SessionSandbox } from '../session-sandbox.ts'
import { openParts, partOfCall } from './call-parts.ts'
import type { Fork, SessionFork } from './session-fork.ts'

export const REVIEW = 'review:'
export const CALL = 'call:'

interface Session {
  readonly epoch: number
  readonly events: Pick<SessionEvents, 'notice'>
  readonly sandbox: SessionSandbox
  readonly fork: SessionFork
  openSandbox(): Promise<void>
}

/** Stores what the fork has changed so far. Previews that were never kept are forgotten with it: there is one at a time. */
export async function storeChanges(
  session: Session,
  fork: Fork,
  about: VersionAbout,
  callId?: string
): Promise<ChangeSummary> {
  await session.openSandbox()
  // Another instance had the session meanwhile and has gone on without these changes.
  if (session.epoch !== fork.epoch) throw leaseLost()
  return storeNow(session, fork, about, callId)
}

/** `callId` names the call of a review that has made the latest changes. */
function storeNow(
  { events, sandbox }: Session,
  fork: Fork,
  about: VersionAbout,
  callId?: string
): Promise<ChangeSummary> {
  const { purpose: id } = fork
  return sandbox.exclusively(async (checkpoint) => {
    const { changes, skipped } = await fork.diff()
    const left = notKeptText('Not among the changes that you decide on', skipped)
    if (left !== undefined) await events.notice('files_not_kept', left, fork.epoch)
    const { changeSets } = checkpoint
    const set: StoredChangeSet = { id, kind: 'open', at: Date.now(), about, changes }
    const isEmpty = changes.length === 0
    const former = openSets(checkpoint, CALL).filter((each) => each !== id || isEmpty)
    if (isEmpty) await dropSets(checkpoint, [...former, ...(changeSets.has(id) ? [id] : []), ...openParts(changeSets)])
    else {
      const was = changeSets.get(id)?.changes ?? []
      const store = async (found: readonly StoredChange[]) => {
        const part = callId === undefined ? null : partOfCall(callId, was, found)
        const keep = [...(part ? [part] : []), { ...set, changes: found }]
        await checkpoint.commit({ put: [], deleted: [], drop: former, keep })
      }
      await store(changes)
      // The content can be read now.
      const linked = await linkRenames(checkpoint, changes)
      if (linked !== changes) await store(linked)
      return summaryOf({ id, changes: linked })
    }
    return summaryOf(set)
  })
}

/**
 * Ends the processes that calls of a review have left running, and stores what they have written until now. If that fails, the fork
 * ends: it has more than is stored. The sandbox must be open under the fork's epoch.
 */
export async function endProcesses(session: Session): Promise<void> {
  const { epoch, fork: forks, sandbox } = session
  const fork = forks.goingOn(epoch)
  if (!fork?.purpose.startsWith(REVIEW)) return
  const isEnded = await fork.endProcesses()
  try {
    if (!sandbox.savedUnder(epoch)) throw leaseLost()
    await storeNow(session, fork, aboutOf(fork))
  } catch (error) {
    await forks.close()
    if (isOwnershipError(error)) throw error
  }
  if (!isEnded) await forks.close()
}

export function aboutOf({ purpose }: Fork): VersionAbout {
  return { by: 'review', reviewId: purpose.slice(REVIEW.length) }
}

export function openSets({ changeSets }: Checkpoint, prefix: string): string[] {
  return [...changeSets.values()].flatMap(({ id, kind }) => (kind === 'open' && id.startsWith(prefix) ? [id] : []))
}

export async function dropSets(checkpoint: Checkpoint, drop: string[]): Promise<void> {
  if (drop.length > 0) await checkpoint.commit({ put: [], deleted: [], drop })
}
