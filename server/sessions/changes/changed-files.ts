/**
 * Change sets of the workspace: how they are shown, hashed, planned and reverted. Everything here is pure; the content is in the
 * checkpoint, and `sandboxes/` writes it. Invariant: the hash of a set covers every path with both sides, so that a decision can't
 * be applied to anything else than what was shown.
 */

import { createHash } from 'node:crypto'
import {
  type ChangedFile,
  type ChangeSummary,
  type ChosenPaths,
  type FileSide,
  isChosen,
  MAX_LISTED_FILES,
  MAX_LISTED_INSIDE,
  namedIn
} from '../../../contract/effects/change-set.ts'
import { fromWire, parentOf } from '../../../workspace-server/checkpoint/raw-path.ts'
import type { WorkspaceEntry } from '../../../workspace-server/protocol.ts'
import { AppError } from '../../lib/errors.ts'
import type { StoredChange, StoredChangeSet } from '../../storage/checkpoint-store.ts'

/** The mode of a new folder in the sandbox. */
const USUAL_MODE = 0o755

/** A path that was changed in the workspace too. */
export interface Conflict {
  /** The entry at this path now, or the entry in its way; null if there is none. */
  now: WorkspaceEntry | null
  /** Names what a choice for this path would replace. */
  mark: string
  /** New paths in the folder that a choice for this path would replace. */
  inside: readonly string[]
}

/** Without times: they are restored, but nobody decides on them. */
function sideOf(entry: WorkspaceEntry): FileSide {
  if (entry.type === 'link') return { type: 'link', target: entry.target }
  if (entry.type === 'dir') return { type: 'dir', mode: entry.mode }
  return { type: 'file', mode: entry.mode, size: entry.size, hash: entry.hash }
}

/**
 * The changes as a person sees them, by path. A folder is shown only if it was created or deleted empty, its mode has changed, or it was
 * created with an unusual mode, or if it is in conflict.
 * A deleted and a created file with the same content, or linked, are one renamed file. They are two if there is something else at both
 * paths, so that both are shown before they are replaced. `conflicts` has what is in the workspace by now.
 */
export function filesOf(
  changes: readonly StoredChange[],
  conflicts: ReadonlyMap<string, Conflict> = new Map()
): ChangedFile[] {
  const origins = renamedFrom(changes)
  for (const [path, origin] of origins)
    if (conflicts.get(path)?.now && conflicts.get(origin.path)?.now) origins.delete(path)
  const left = new Set([...origins.values()].map(({ path }) => path))
  const used = foldersInUse(changes)
  const files = changes
    .filter(({ path }) => !left.has(path))
    .filter((change) => conflicts.has(change.path) || !isPassedFolder(change, used))
    .map(({ path, before, after }): ChangedFile => {
      const origin = origins.get(path)
      const was = origin ? origin.before : before
      const conflict = conflictOf(path, conflicts.get(path), origin && conflicts.get(origin.path))
      return {
        path,
        ...(origin && { from: origin.path }),
        ...(was && { before: sideOf(was) }),
        ...(after && { after: sideOf(after) }),
        ...(conflict && { conflict })
      }
    })
  return files.toSorted((a, b) => (a.path < b.path ? -1 : 1))
}

export function summaryOf(set: Pick<StoredChangeSet, 'id' | 'changes'>): ChangeSummary {
  const files = filesOf(set.changes)
  return {
    changeId: set.id,
    hash: hashOf(set.changes),
    total: files.length,
    files: files.slice(0, MAX_LISTED_FILES)
  }
}

/** The paths that were accepted. `files` are those that the person was shown. Throws if a path is not among the changes. */
export function chosenOf(
  changes: readonly StoredChange[],
  files: readonly ChangedFile[],
  chosen: ChosenPaths
): readonly string[] {
  refuseUnknown(changes, namedIn(chosen))
  return Array.isArray(chosen) ? chosen : files.map(({ path }) => path).filter(isChosen(chosen))
}

/** SHA-256 of every path with both sides. Times don't count, nor does the order. */
export function hashOf(changes: readonly StoredChange[]): string {
  const rows = changes.map(({ path, before, after, from }) => {
    const row = [path, rowOf(before), rowOf(after)]
    return JSON.stringify(from === undefined ? row : [...row, from])
  })
  return createHash('sha256').update(rows.toSorted().join('\n')).digest('hex')
}

/** A decision names only paths that the person was shown. Ignoring another one would decide something else than they said. */
export function refuseUnknown(changes: readonly { path: string }[], named: readonly string[]): void {
  const known = new Set(changes.map(({ path }) => path))
  const unknown = named.find((path) => !known.has(path))
  if (unknown === undefined) return
  const message = `${JSON.stringify(unknown.slice(0, 200))} is not among these changes; nothing was decided.`
  throw new AppError('invalid', 'invalid_request', message)
}

/**
 * The part of a set that a person accepted. The folders around an accepted file and the other side of a rename belong to it. A folder that
 * was listed because of its mode, and was not accepted, gets the usual one. Throws if the part makes no sense without another path.
 */
export function partOf(changes: readonly StoredChange[], accepted: readonly string[]): StoredChange[] {
  const part = acceptedOf(changes, accepted)
  refuseHalf(changes, part)
  return part
}

/**
 * A path that changes between file and folder is accepted together with what is, or was, in the folder. `nowAt` returns what is there now;
 * by default, that is what the changes expect.
 */
export function refuseHalf(
  changes: readonly StoredChange[],
  part: readonly StoredChange[],
  nowAt: (change: StoredChange) => WorkspaceEntry | null = ({ before }) => before
): void {
  const becomes = new Map<string, string>()
  const replaces = new Map<string, string>()
  for (const change of changes) {
    const { path, after } = change
    const now = nowAt(change)
    if (now && !isFolder(now) && isFolder(after)) becomes.set(fromWire(path), path)
    if (isFolder(now) && after && !isFolder(after)) replaces.set(fromWire(path), path)
  }
  if (becomes.size + replaces.size === 0) return
  const taken = new Set(part.map(({ path }) => path))
  for (const { path } of changes) {
    for (let raw = parentOf(fromWire(path)); raw !== ''; raw = parentOf(raw)) {
      const made = becomes.get(raw)
      if (made !== undefined && taken.has(path) && !taken.has(made)) throw onlyTogether(path, made)
      const gone = replaces.get(raw)
      if (gone !== undefined && taken.has(gone) && !taken.has(path)) throw onlyTogether(gone, path)
    }
  }
}

function onlyTogether(path: string, other: string): AppError {
  const [one, two] = [path, other].map((name) => JSON.stringify(name.slice(0, 200)))
  const message = `${one} is possible only together with ${two}, because one of them is a folder that replaces a file, or the other way round. Choose both, or neither.`
  return new AppError('invalid', 'invalid_request', message)
}

function acceptedOf(changes: readonly StoredChange[], accepted: readonly string[]): StoredChange[] {
  const paths = new Set(accepted)
  for (const [path, origin] of renamedFrom(changes)) if (paths.has(path)) paths.add(origin.path)
  const raw = new Set([...paths].map(fromWire))
  const needed = new Set<string>()
  for (const path of raw) for (let at = parentOf(path); at !== ''; at = parentOf(at)) needed.add(at)
  return changes.flatMap((change) => {
    const { path, before, after } = change
    if (paths.has(path)) return [change]
    // A folder that is only there for its files is not listed, so nobody can name it.
    const isNeeded = needed.has(fromWire(path)) && (isFolder(before) || isFolder(after)) && (!before || !after)
    if (!isNeeded) return []
    return [after?.type === 'dir' ? { ...change, after: { ...after, mode: USUAL_MODE } } : change]
  })
}

/** By new path: the deleted file that it was, with the same content or linked to it. */
export function renamedFrom(changes: readonly StoredChange[]): Map<string, StoredChange> {
  const sorted = changes.toSorted((a, b) => (a.path < b.path ? -1 : 1))
  const renamed = linkedIn(sorted)
  const linked = new Set(renamed.values())
  const deleted = new Map<string, StoredChange[]>()
  for (const change of sorted) {
    const { before, after } = change
    if (after || before?.type !== 'file' || before.size === 0 || linked.has(change)) continue
    const same = deleted.get(before.hash)
    if (same) same.push(change)
    else deleted.set(before.hash, [change])
  }
  for (const { path, before, after } of sorted) {
    if (before || after?.type !== 'file' || renamed.has(path)) continue
    const origin = deleted.get(after.hash)?.shift()
    if (origin) renamed.set(path, origin)
  }
  return renamed
}

/** A link may be to a path that is not deleted any more, or not in this part of a set. */
function linkedIn(changes: readonly StoredChange[]): Map<string, StoredChange> {
  const linked = new Map<string, StoredChange>()
  const links = changes.filter(({ from, before, after }) => from !== undefined && !before && after?.type === 'file')
  if (links.length === 0) return linked
  const gone = new Map(
    changes.flatMap((each) => (each.before?.type === 'file' && !each.after ? [[each.path, each]] : []))
  )
  for (const { path, from = '' } of links) {
    const origin = gone.get(from)
    if (origin) linked.set(path, origin)
    gone.delete(from)
  }
  return linked
}

/** The folders with a changed path in them, as raw paths, apart for both sides. */
function foldersInUse(changes: readonly StoredChange[]): { before: Set<string>; after: Set<string> } {
  const used = { before: new Set<string>(), after: new Set<string>() }
  for (const { path, before, after } of changes) {
    const parent = parentOf(fromWire(path))
    if (before) used.before.add(parent)
    if (after) used.after.add(parent)
  }
  return used
}

function isPassedFolder({ path, before, after }: StoredChange, used: ReturnType<typeof foldersInUse>): boolean {
  const raw = fromWire(path)
  if (!before && after?.type === 'dir') return after.mode === USUAL_MODE && used.after.has(raw)
  return !after && isFolder(before) && used.before.has(raw)
}

function isFolder(entry: WorkspaceEntry | null): boolean {
  return entry?.type === 'dir'
}

function conflictOf(path: string, ...both: (Conflict | undefined)[]): ChangedFile['conflict'] {
  const conflicts = both.filter((conflict) => conflict !== undefined)
  if (conflicts.length === 0) return undefined
  const now = conflicts.find((conflict) => conflict.now)?.now
  const there = now && { now: sideOf(now), ...(now.path !== path && { at: now.path }) }
  const inside = conflicts.flatMap((conflict) => conflict.inside)
  const more = inside.length > 0 && { inside: inside.slice(0, MAX_LISTED_INSIDE), insideTotal: inside.length }
  return { ...there, ...more, seen: conflicts.map(({ mark }) => mark).join(' ') }
}

export function rowOf(entry: WorkspaceEntry | null): unknown[] | null {
  if (entry === null) return null
  if (entry.type === 'link') return ['link', entry.target]
  return entry.type === 'dir' ? ['dir', entry.mode] : ['file', entry.mode, entry.hash]
}
