import { randomUUID } from 'node:crypto'
import type { CommandData } from '../../../contract/commands.ts'
import type { ChangeSummary } from '../../../contract/effects/change-set.ts'
import type { Transcript } from '../../../contract/transcript.ts'
import { AppError } from '../../lib/errors.ts'
import type { StoredChangeSet } from '../../storage/checkpoint-store.ts'
import type { NewEvent } from '../../storage/event-log.ts'
import { summaryOf } from '../changes/changed-files.ts'
import { planRevert, revertedPart } from '../changes/revert-plan.ts'
import type { HeldSession, SessionManager } from '../sandboxes/session-manager.ts'

/** A command that runs could go on writing what is being reverted. Calls that wait for a decision don't matter. */
export function checkNothingRuns({ calls, turnId }: Pick<Transcript, 'calls' | 'turnId'>): void {
  const inTurn = Object.values(calls).filter((call) => call.turnId === turnId)
  if (!inTurn.some(({ startedAt, result }) => startedAt !== undefined && !result)) return
  throw new AppError(
    'conflict',
    'call_running',
    'A call is running in this session. Stop it first, or wait for its end.'
  )
}

/** Undoes what the person was shown, and nothing else. Returns undefined if there was nothing to undo. */
export async function revertFiles(
  hold: Pick<HeldSession, 'workspace'>,
  { changeId, scope, hash, paths, choices }: CommandData<'files:revert'>
): Promise<StoredChangeSet | undefined> {
  const workspace = await hold.workspace()
  const version = await workspace.applyChanges({
    changes(saved) {
      const plan = planRevert(saved, changeId, scope)
      if (plan.hash === hash) return revertedPart(plan, paths)
      throw new AppError('conflict', 'stale', 'The files have changed since you were shown them; look again.')
    },
    // The hash of the plan covers what was shown of each conflict.
    resolution: { choices },
    orNothing: true,
    version: { id: `revert:${randomUUID()}`, about: { by: 'revert', of: changeId, scope } }
  })
  return version ?? undefined
}

/** Stored once, even if several instances notice the revert. */
export function revertedEvent(version: StoredChangeSet): NewEvent & { data: { changes: ChangeSummary } } {
  const { of = '', scope = 'one' } = version.about
  const data = { of, scope, changes: summaryOf(version), by: 'human' }
  return { type: 'files:reverted', data, key: `reverted:${version.id}` }
}

/** The reverts that the log does not have, because the server died between the two. */
export async function untoldReverts(
  sessions: Pick<SessionManager, 'openSaved'>,
  sessionId: string,
  { entries }: Pick<Transcript, 'entries'>
): Promise<NewEvent[]> {
  const told = new Set(entries.flatMap((entry) => (entry.kind === 'reverted' ? [entry.changes.changeId] : [])))
  const saved = await sessions.openSaved(sessionId)
  try {
    return [...saved.changeSets.values()]
      .filter(({ id, kind, about }) => kind === 'version' && about.by === 'revert' && !told.has(id))
      .map(revertedEvent)
  } finally {
    await saved.close()
  }
}
