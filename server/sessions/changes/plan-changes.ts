import { createHash } from 'node:crypto'
import {
  type ChosenPaths,
  type ConflictChoices,
  namedIn,
  type SeenConflicts
} from '../../../contract/effects/change-set.ts'
import { fromWire, parentOf, type RawPath, toWire } from '../../../workspace-server/checkpoint/raw-path.ts'
import type { WorkspaceEntry } from '../../../workspace-server/protocol.ts'
import { AppError } from '../../lib/errors.ts'
import { isSameEntry, type StoredChange } from '../../storage/checkpoint-store.ts'
import {
  type Conflict,
  chosenOf,
  filesOf,
  partOf,
  refuseHalf,
  refuseUnknown,
  renamedFrom,
  rowOf
} from './changed-files.ts'

type Entries = ReadonlyMap<string, WorkspaceEntry>
type Accepted = 'all' | 'none' | ChosenPaths

/** The effect that applying changes would have on the workspace as it is now. */
export interface ChangePlan {
  /** Changes that must be made. `before` is the entry that is there now. */
  changes: StoredChange[]
  /** Changes that are there already, for example because they were applied before a crash. */
  present: StoredChange[]
}

/** How a person resolved conflicts. Without `seen`, the caller has checked that they saw what is there. */
export interface Resolution {
  choices?: ConflictChoices | undefined
  seen?: SeenConflicts | undefined
}

const FOLDER_MODE = 0o755
const MARK_CHARS = 32

/**
 * The paths that were changed in the workspace too, with what is there now. A path is also in conflict if a file is now where one of
 * its folders would be, or if it is a file now and the workspace has put something new into the folder of that name.
 */
export function conflictsOf(entries: Entries, changes: readonly StoredChange[]): Map<string, Conflict> {
  const conflicts = new Map<string, Conflict>()
  const planned = new Map(changes.map((change) => [change.path, change.after]))
  const below = pathsBelow(entries, changes)
  for (const { path, before, after } of changes) {
    const now = entries.get(path) ?? null
    if (isSameEntry(now, after)) continue
    const blocker = after && blockerOf(entries, planned, path)
    const inside = after && after.type !== 'dir' ? below(path) : []
    const more = inside.filter((child) => !planned.has(child))
    if (!blocker && isSameEntry(now, before) && more.length === 0) continue
    const replaced = [blocker ?? null, now, ...inside.map((child) => entries.get(child) ?? null)]
    conflicts.set(path, { now: blocker ?? now, mark: markOf(path, replaced), inside: more })
  }
  return conflicts
}

/**
 * A folder that is there only for its files is not listed, so nobody has decided on it. Check it when the decision is made: after a crash
 * in the middle of applying it, a folder that was in conflict is not listed any more.
 */
export function refuseUnlisted(entries: Entries, changes: readonly StoredChange[], accept: Accepted): void {
  if (typeof accept !== 'string') refuseUnknown(filesOf(changes, conflictsOf(entries, changes)), namedIn(accept))
}

/** The part of the changes that was accepted, of those that are shown beside the workspace as it is now. */
export function acceptedPart(
  entries: Entries,
  changes: readonly StoredChange[],
  accept: Accepted
): readonly StoredChange[] {
  if (typeof accept === 'string') return accept === 'all' ? changes : []
  return partOf(changes, chosenOf(changes, filesOf(changes, conflictsOf(entries, changes)), accept))
}

/** Names all that choosing the fork's version at this path would replace. */
function markOf(path: string, replaced: (WorkspaceEntry | null)[]): string {
  const rows = JSON.stringify([path, ...replaced.map((entry) => [entry?.path, rowOf(entry)])])
  return createHash('sha256').update(rows).digest('hex').slice(0, MARK_CHARS)
}

/**
 * Plans to apply the changes. For a conflict the person must have chosen: `fork` applies the change, `workspace` leaves what is there.
 * Throws conflict `changes_conflict` if a choice is missing, and `stale` if something else is there than the person saw when they
 * chose. A folder is deleted only if nothing else is left in it.
 */
export function planChanges(
  entries: Entries,
  changes: readonly StoredChange[],
  { choices = {}, seen }: Resolution = {}
): ChangePlan {
  const conflicts = conflictsOf(entries, changes)
  const decided = withOrigins(changes, choices)
  const open = [...conflicts.keys()].filter((path) => !decided.has(path))
  if (open.length > 0) throw changesConflict(open)
  if (seen) checkSeen(changes, conflicts, seen)
  const isWanted = ({ path }: StoredChange) => !conflicts.has(path) || decided.get(path) === 'fork'
  const isThere = ({ path, after }: StoredChange) => isSameEntry(entries.get(path) ?? null, after)
  const wanted = changes.filter(isWanted)
  refuseHalf(changes, wanted, ({ path }) => entries.get(path) ?? null)
  const target = new Map<string, WorkspaceEntry | null>()
  for (const change of wanted) if (!isThere(change)) target.set(change.path, change.after)
  makeRoom(entries, target, pathsBelow(entries, changes))
  keepFullFolders(entries, target)
  const links = new Map(wanted.flatMap(({ path, from }) => (from === undefined ? [] : [[path, from]])))
  const planned = [...target].map(([path, after]): StoredChange => {
    const from = links.get(path)
    const change = { path, before: entries.get(path) ?? null, after }
    return from === undefined ? change : { ...change, from }
  })
  return {
    changes: planned.filter(({ before, after }) => !isSameEntry(before, after)),
    present: wanted.filter((change) => isThere(change) && !isSameEntry(change.before, change.after))
  }
}

/** The nearest ancestor that is not a folder, and that the changes don't turn into one. */
function blockerOf(
  entries: Entries,
  planned: ReadonlyMap<string, WorkspaceEntry | null>,
  path: string
): WorkspaceEntry | undefined {
  for (let raw = parentOf(fromWire(path)); raw !== ''; raw = parentOf(raw)) {
    const folder = toWire(raw)
    const then = planned.get(folder)
    const now = entries.get(folder)
    if (then?.type === 'dir' || now?.type === 'dir') return undefined
    if (now && then === undefined) return now
  }
  return undefined
}

/** Adds missing folders, in place of files if necessary, and removes everything below a path that is no longer a folder. */
function makeRoom(
  entries: Entries,
  target: Map<string, WorkspaceEntry | null>,
  below: (path: string) => string[]
): void {
  for (const [path, after] of [...target]) {
    if (!after) continue
    if (after.type !== 'dir') for (const child of below(path)) target.set(child, target.get(child) ?? null)
    for (let raw = parentOf(fromWire(path)); raw !== ''; raw = parentOf(raw)) {
      const folder = toWire(raw)
      const then = target.get(folder) ?? entries.get(folder)
      if (then?.type === 'dir' && target.get(folder) !== null) break
      const old = entries.get(folder)
      const mode = old?.type === 'dir' ? old.mode : FOLDER_MODE
      target.set(folder, { path: folder, type: 'dir', mode, mtimeMs: after.mtimeMs })
    }
  }
}

/** Leaves folders that would not be empty. */
function keepFullFolders(entries: Entries, target: Map<string, WorkspaceEntry | null>): void {
  const isGoing = (path: string) => target.get(path) === null && entries.get(path)?.type === 'dir'
  if (![...target.keys()].some(isGoing)) return
  const left = [...entries.keys(), ...target.keys()].filter((path) => target.get(path) !== null)
  for (const path of left) {
    for (let raw = parentOf(fromWire(path)); raw !== ''; raw = parentOf(raw)) {
      if (isGoing(toWire(raw))) target.delete(toWire(raw))
    }
  }
}

/** All paths of the workspace below a folder. Looks for them only if one of the changes replaces a folder. */
function pathsBelow(entries: Entries, changes: readonly StoredChange[]): (path: string) => string[] {
  const replaced = new Map<RawPath, string[]>()
  for (const { path, after } of changes) {
    if (after && after.type !== 'dir' && entries.get(path)?.type === 'dir') replaced.set(fromWire(path), [])
  }
  for (const path of replaced.size > 0 ? entries.keys() : []) {
    for (let raw = parentOf(fromWire(path)); raw !== ''; raw = parentOf(raw)) replaced.get(raw)?.push(path)
  }
  return (path) => replaced.get(fromWire(path)) ?? []
}

/** A renamed file is shown once, with the marks of both of its paths. */
function checkSeen(
  changes: readonly StoredChange[],
  conflicts: ReadonlyMap<string, Conflict>,
  seen: SeenConflicts
): void {
  const shownAt = new Map([...renamedFrom(changes)].map(([path, origin]) => [origin.path, path]))
  const marks = new Map(Object.entries(seen))
  for (const [path, { mark }] of conflicts) {
    const shown = marks.get(path) ?? marks.get(shownAt.get(path) ?? path)
    if (shown?.split(' ').includes(mark)) continue
    const message = `${JSON.stringify(path.slice(0, 200))} has changed again in the workspace since you were shown it; look again.`
    throw new AppError('conflict', 'stale', message)
  }
}

/** A renamed file is shown once, so a choice for it counts for both of its paths. */
function withOrigins(changes: readonly StoredChange[], choices: ConflictChoices): Map<string, 'fork' | 'workspace'> {
  const decided = new Map(Object.entries(choices))
  for (const [path, origin] of renamedFrom(changes)) {
    const choice = decided.get(path)
    if (choice && !decided.has(origin.path)) decided.set(origin.path, choice)
  }
  return decided
}

function changesConflict(paths: string[]): AppError {
  const [first = ''] = paths
  const more = paths.length > 1 ? ` and ${paths.length - 1} more` : ''
  const message = `The workspace has changed meanwhile: choose which version of ${JSON.stringify(first.slice(0, 200))}${more} to keep.`
  return new AppError('conflict', 'changes_conflict', message, { details: { paths: paths.slice(0, 100) } })
}
