import type { WorkspaceEntry } from '../../../workspace-server/protocol.ts'
import { isSameEntry, type StoredChange, type StoredChangeSet } from '../checkpoint-store.ts'
import type { RecordSide, SetRecord } from './manifest-record.ts'
import { entryBytes } from './stored-entry.ts'

/** With `more`, these changes are added to the stored set of the same id. */
export type StoredPart = StoredChangeSet & { more?: true }

const SET_ROW_BYTES = 150

/** Both sides of a change, without those that are empty. */
export function sidesOf({ before, after }: StoredChange): WorkspaceEntry[] {
  return [before, after].filter((side) => side !== null)
}

/** Approximate size of the change in a manifest. */
export function changeBytes(change: StoredChange): number {
  return sidesOf(change).reduce((sum, side) => sum + entryBytes(side), change.from?.length ?? 0)
}

/** Approximate size of a set in a manifest, without its changes. */
export function setRowBytes({ id }: StoredChangeSet): number {
  return SET_ROW_BYTES + id.length
}

/**
 * Adds changes to a set. If a path is in both, the first `before` and the last `after` count; a path that is back as it was has not
 * changed. `removed` and `added` are what differs from the set before.
 */
export function grown(
  set: StoredChangeSet,
  more: readonly StoredChange[]
): { set: StoredChangeSet; removed: StoredChange[]; added: StoredChange[] } {
  const latest = new Map(more.map((change) => [change.path, change]))
  const removed: StoredChange[] = []
  const kept: StoredChange[] = []
  for (const change of set.changes) {
    const later = latest.get(change.path)
    if (!later) kept.push(change)
    else removed.push(change)
    if (later) latest.set(change.path, { ...later, before: change.before })
  }
  const wasThere = new Set(removed.map(({ path }) => path))
  const added = [...latest.values()].filter(({ path, before, after }) => {
    return !wasThere.has(path) || !isSameEntry(before, after)
  })
  return { set: { ...set, changes: [...kept, ...added] }, removed, added }
}

export function setRecord({ id, kind, at, about }: StoredChangeSet, changes: readonly StoredChange[]): SetRecord {
  const rows = changes.map(({ path, before, after, from }): SetRecord['changes'][number] => {
    return from === undefined ? [path, side(before), side(after)] : [path, side(before), side(after), from]
  })
  return { id, kind, at, about, changes: rows }
}

export function setFromRecord({ changes, ...rest }: SetRecord): StoredPart {
  const full = (path: string, from: RecordSide | null) => (from ? { ...from, path } : null)
  return {
    ...rest,
    changes: changes.map(([path, before, after, from]) => {
      const change = { path, before: full(path, before), after: full(path, after) }
      return from === undefined ? change : { ...change, from }
    })
  }
}

function side(entry: WorkspaceEntry | null): RecordSide | null {
  if (entry === null) return null
  const { path: _, ...rest } = entry
  return rest
}

/** How often content is named. */
export interface Refs {
  /** By files of the workspace. */
  files: number
  /** By sides of changes in versions. */
  versions: number
  /** By sides of changes that wait for a decision. */
  open: number
}

export const NO_REFS: Refs = { files: 0, versions: 0, open: 0 }

export function sumOfRefs(a: Refs = NO_REFS, b: Refs): Refs {
  return { files: a.files + b.files, versions: a.versions + b.versions, open: a.open + b.open }
}

export function isNamed({ files, versions, open }: Refs): boolean {
  return files + versions + open > 0
}

/** Which limit the content counts against. */
export function placeOf({ files, versions, open }: Refs): 'blobBytes' | 'keptBytes' | 'openBytes' | undefined {
  if (files > 0) return 'blobBytes'
  if (versions > 0) return 'keptBytes'
  return open > 0 ? 'openBytes' : undefined
}
