import { createHash } from 'node:crypto'
import { type ChangedFile, type ChosenPaths, namedIn } from '../../../contract/effects/change-set.ts'
import { AppError } from '../../lib/errors.ts'
import {
  type Checkpoint,
  isSameEntry,
  type StoredChange,
  type StoredChangeSet
} from '../../storage/checkpoint-store.ts'
import { type Conflict, chosenOf, filesOf, hashOf, partOf, refuseUnknown, renamedFrom } from './changed-files.ts'
import { conflictsOf } from './plan-changes.ts'

export type RevertScope = 'one' | 'since'

/** The changes that a revert would make, and the hash that binds a person's decision to them. */
export interface RevertPlan {
  hash: string
  changes: StoredChange[]
  files: ChangedFile[]
}

type Saved = Pick<Checkpoint, 'entries' | 'changeSets'>

/** Plans to undo one version, it and all later ones, or what one call of an accepted review did. Throws not-found `unknown_version`. */
export function planRevert({ entries, changeSets }: Saved, changeId: string, scope: RevertScope): RevertPlan {
  const undone = scope === 'one' ? [changeSets.get(changeId)].filter(isUndoable) : sinceVersion(changeSets, changeId)
  if (undone.length === 0) throw unknownVersion()
  const isDone = ({ path, after }: StoredChange) => isSameEntry(entries.get(path) ?? null, after)
  const changes = inverse(undone.flatMap((version) => version.changes)).filter((change) => !isDone(change))
  const conflicts = conflictsOf(entries, changes)
  return { hash: planHash(changes, conflicts), changes, files: filesOf(changes, conflicts) }
}

/** The parts of a review can be undone when it was accepted: then each belongs to its call. */
function isUndoable(set: StoredChangeSet | undefined): set is StoredChangeSet {
  return set?.kind === 'version' || (set?.kind === 'part' && set.about.by === 'call')
}

function sinceVersion(changeSets: Saved['changeSets'], changeId: string): StoredChangeSet[] {
  const versions = [...changeSets.values()].filter(({ kind }) => kind === 'version')
  const from = versions.findIndex(({ id }) => id === changeId)
  return from < 0 ? [] : versions.slice(from)
}

/** The part of the plan for these files, or all of it. */
export function revertedPart({ changes, files }: RevertPlan, paths: ChosenPaths | undefined): StoredChange[] {
  if (!paths) return changes
  refuseUnknown(files, namedIn(paths))
  return partOf(changes, chosenOf(changes, files, paths))
}

export function unknownVersion(): AppError {
  const message = 'There is no such version of the files. It may have been removed to save space.'
  return new AppError('not-found', 'unknown_version', message)
}

/** From the last state of each path back to its first. */
function inverse(changes: readonly StoredChange[]): StoredChange[] {
  const back = new Map<string, StoredChange>()
  for (const { path, before, after } of changes) {
    const known = back.get(path)
    back.set(path, { path, before: after, after: known ? known.after : before })
  }
  // A revert renames files back.
  const links = new Map([...renamedFrom(changes)].map(([path, origin]) => [origin.path, path]))
  return [...back.values()]
    .filter(({ before, after }) => !isSameEntry(before, after))
    .map((change) => {
      const from = links.get(change.path)
      return from === undefined ? change : { ...change, from }
    })
}

/** The hash includes the conflicts, because the person decides on them too. */
function planHash(changes: readonly StoredChange[], conflicts: ReadonlyMap<string, Conflict>): string {
  const marks = [...conflicts.values()].map(({ mark }) => mark).toSorted()
  return createHash('sha256')
    .update(`${hashOf(changes)} ${marks.join(' ')}`)
    .digest('hex')
}
