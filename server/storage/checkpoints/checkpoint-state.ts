import type { WorkspaceEntry } from '../../../workspace-server/protocol.ts'
import { AppError } from '../../lib/errors.ts'
import type { CheckpointDelta, StoredChange, StoredChangeSet } from '../checkpoint-store.ts'
import {
  changeBytes,
  grown,
  isNamed,
  NO_REFS,
  placeOf,
  type Refs,
  type StoredPart,
  setFromRecord,
  setRecord,
  setRowBytes,
  sidesOf,
  sumOfRefs
} from './change-sets.ts'
import { type ManifestRecord, manifestRecord, type SetRecord } from './manifest-record.ts'
import { entryBytes, storedEntry } from './stored-entry.ts'

export interface Location {
  pack: string
  offset: number
  /** The length of the content. */
  length: number
  /** Bytes in the pack. Differs from `length` if runs of zeros were left out (`hole-table.ts`). */
  stored: number
}

/** The length of a content and its size in a pack. */
export type ContentSize = Pick<Location, 'length' | 'stored'>

/** A blob that nothing names is dropped. */
export interface Blob extends Location, Refs {}

interface Sizes {
  /** Content of the workspace's files. */
  blobBytes: number
  /** Content that versions name, and no file. */
  keptBytes: number
  /** Content that only change sets name that wait for a decision. */
  openBytes: number
  /** The size of all entries in a manifest. */
  entryBytes: number
  /** The size of all versions in a manifest. */
  setBytes: number
  /** The size of all change sets in a manifest that wait for a decision. */
  openSetBytes: number
  /** The size of all files as programs see it: with runs of zeros, and the same content as often as it occurs. */
  fileBytes: number
}

/** A delta that was checked, and the size of the state with it. */
export interface Change {
  put: WorkspaceEntry[]
  deleted: string[]
  drop: string[]
  /** As they are recorded. */
  sets: SetRecord[]
  /** The change sets that differ, in their new state. Null: removed. */
  changeSets: Map<string, StoredChangeSet | null>
  isThinned: boolean
  /** For each content: by how much the number of its names changes. */
  refs: Map<string, Refs>
  sizes: Sizes
  /** The size of content in a pack. */
  storedBytes: (hash: string) => number
}

/** Limits for what versions may take. Those beyond them are removed, the oldest first. */
export interface HistoryLimits {
  maxBytes: number
  /** Versions before this time are removed. */
  since: number
}

/** The size that the list of a set's changes counts towards. */
const LISTED = { version: 'setBytes', part: 'setBytes', open: 'openSetBytes' } as const
const BLOB_ROW_BYTES = 100
const RECORD_ENTRIES = 2000
const RECORD_CHARS = 1024 * 1024
/** The most that the list of all changes in versions may take: it is in memory while the session is open. */
const MAX_SET_BYTES = 16 * 1024 * 1024

/**
 * The files of a session, its change sets, and the location of their content. It is in memory only, and the cost of a change
 * depends on its size.
 */
export class CheckpointState {
  readonly entries = new Map<string, WorkspaceEntry>()
  readonly changeSets = new Map<string, StoredChangeSet>()
  readonly blobs = new Map<string, Blob>()
  isThinned = false
  sizes: Sizes = { blobBytes: 0, keptBytes: 0, openBytes: 0, entryBytes: 0, setBytes: 0, openSetBytes: 0, fileBytes: 0 }

  /** All content that must stay. */
  get liveBytes(): number {
    return this.sizes.blobBytes + this.sizes.keptBytes + this.sizes.openBytes
  }

  /** Approximate size of a snapshot in a manifest. */
  get manifestBytes(): number {
    const { entryBytes, setBytes, openSetBytes } = this.sizes
    return entryBytes + setBytes + openSetBytes + this.blobs.size * BLOB_ROW_BYTES
  }

  /** Checks a delta without changing anything. `sizeOf` knows content that is not part of the state yet. */
  plan(delta: CheckpointDelta & { keep?: StoredPart[] }, sizeOf: (hash: string) => ContentSize | undefined): Change {
    const put = new Map<string, WorkspaceEntry>()
    for (const entry of delta.put) put.set(entry.path, this.#checked(entry, sizeOf))
    const deleted = [...new Set(delta.deleted)].filter((path) => this.entries.has(path) && !put.has(path))
    const { isThinned } = this
    const storedBytes = (hash: string) => this.blobs.get(hash)?.stored ?? sizeOf(hash)?.stored ?? 0
    const planned = { put: [...put.values()], deleted, drop: [], sets: [], changeSets: new Map(), refs: new Map() }
    const change: Change = { ...planned, isThinned, sizes: { ...this.sizes }, storedBytes }
    for (const entry of change.put) {
      this.#countFile(change, this.entries.get(entry.path), -1)
      this.#countFile(change, entry, 1)
    }
    for (const path of deleted) this.#countFile(change, this.entries.get(path), -1)
    for (const id of delta.drop ?? []) this.#drop(change, id)
    for (const set of delta.keep ?? []) this.#keep(change, this.#checkedSet(set, sizeOf))
    return change
  }

  /**
   * Plans to remove parts, then the oldest versions, until the rest is within the limits. What waits for a decision does not count: it can
   * still be discarded. Of any size, the newest version stays, and those that the change adds: they tell a repeated step that it was done.
   */
  thin(change: Change, { maxBytes, since }: HistoryLimits): void {
    const isOver = ({ keptBytes, setBytes }: Sizes) => keptBytes + setBytes > maxBytes || setBytes > MAX_SET_BYTES
    const known = [...this.changeSets.keys()].filter((id) => this.changeSets.get(id)?.kind === 'version')
    const added = [...change.changeSets.keys()].filter((id) => this.changeSets.get(id)?.kind !== 'version')
    const isKind = (kind: StoredChangeSet['kind']) => (id: string) => this.#planned(change, id)?.kind === kind
    const spared = added.filter(isKind('version'))
    const last = new Set(spared.length > 0 ? spared : known.slice(-1))
    const parts = [...new Set([...this.changeSets.keys(), ...added])].filter(isKind('part'))
    for (const id of [...parts, ...[...known, ...added].filter(isKind('version'))]) {
      const { at = 0, kind } = this.#planned(change, id) ?? {}
      if (at >= since && (last.has(id) || !isOver(change.sizes))) continue
      this.#drop(change, id)
      change.isThinned ||= kind === 'version'
    }
  }

  #planned(change: Change, id: string): StoredChangeSet | undefined {
    const planned = change.changeSets.get(id)
    return planned === undefined ? this.changeSets.get(id) : (planned ?? undefined)
  }

  #drop(change: Change, id: string): void {
    const set = this.#planned(change, id)
    if (!set) return
    this.#countSides(change, set.kind, set.changes, -1)
    change.sizes[LISTED[set.kind]] -= setRowBytes(set)
    change.sets = change.sets.filter((record) => record.id !== id)
    if (this.changeSets.has(id) && !change.drop.includes(id)) change.drop.push(id)
    change.changeSets.set(id, null)
  }

  #keep(change: Change, set: StoredPart): void {
    const known = this.#planned(change, set.id)
    if (known && (set.more || (known.kind === 'version' && set.kind === 'version'))) {
      const more = grown(known, set.changes)
      this.#countSides(change, known.kind, more.removed, -1)
      this.#countSides(change, known.kind, more.added, 1)
      change.changeSets.set(set.id, more.set)
      change.sets.push({ ...setRecord(set, set.changes), more: true })
      return
    }
    this.#drop(change, set.id)
    this.#countSides(change, set.kind, set.changes, 1)
    change.sizes[LISTED[set.kind]] += setRowBytes(set)
    change.changeSets.set(set.id, set)
    change.sets.push(setRecord(set, set.changes))
  }

  #checkedSet(set: StoredPart, sizeOf: (hash: string) => ContentSize | undefined): StoredPart {
    const checked = (side: WorkspaceEntry | null, path: string) => side && this.#checked({ ...side, path }, sizeOf)
    const changes = set.changes.map((change) => {
      const { path, before, after } = change
      return { ...change, before: checked(before, path), after: checked(after, path) }
    })
    return { ...set, changes }
  }

  #countFile(change: Change, entry: WorkspaceEntry | undefined, by: 1 | -1): void {
    if (!entry) return
    const { sizes } = change
    sizes.entryBytes += by * entryBytes(entry)
    if (entry.type !== 'file') return
    sizes.fileBytes += by * entry.size
    this.#countRef(change, entry.hash, { ...NO_REFS, files: by })
  }

  #countSides(change: Change, kind: StoredChangeSet['kind'], changes: readonly StoredChange[], by: 1 | -1): void {
    const refs = kind === 'open' ? { ...NO_REFS, open: by } : { ...NO_REFS, versions: by }
    for (const each of changes) {
      change.sizes[LISTED[kind]] += by * changeBytes(each)
      for (const side of sidesOf(each)) if (side.type === 'file') this.#countRef(change, side.hash, refs)
    }
  }

  #countRef({ sizes, refs, storedBytes }: Change, hash: string, by: Refs): void {
    const blob = this.blobs.get(hash)
    const planned = refs.get(hash) ?? NO_REFS
    const next = sumOfRefs(planned, by)
    const was = placeOf(sumOfRefs(blob, planned))
    const is = placeOf(sumOfRefs(blob, next))
    refs.set(hash, next)
    if (was === is) return
    if (was) sizes[was] -= storedBytes(hash)
    if (is) sizes[is] += storedBytes(hash)
  }

  #checked(entry: WorkspaceEntry, sizeOf: (hash: string) => ContentSize | undefined): WorkspaceEntry {
    const stored = storedEntry(entry)
    if (stored.type !== 'file') return stored
    const content = this.blobs.get(stored.hash) ?? sizeOf(stored.hash)
    if (content) return { ...stored, size: content.length }
    const message = 'The content of a file must be added before the file is stored.'
    throw new AppError('invalid', 'checkpoint_content_missing', message)
  }

  /** `locate` returns the location of content that is new with the change. */
  apply(change: Change, locate: (hash: string) => Location): this {
    for (const path of change.deleted) this.entries.delete(path)
    for (const entry of change.put) this.entries.set(entry.path, entry)
    for (const [id, set] of change.changeSets) {
      // A set that is replaced is not older than those made since.
      if (set?.at !== this.changeSets.get(id)?.at) this.changeSets.delete(id)
      if (set) this.changeSets.set(id, set)
    }
    for (const [hash, by] of change.refs) {
      const blob = this.blobs.get(hash)
      const total = sumOfRefs(blob, by)
      if (!isNamed(total)) this.blobs.delete(hash)
      else if (blob) Object.assign(blob, total)
      else this.blobs.set(hash, { ...locate(hash), ...total })
    }
    this.isThinned = change.isThinned
    this.sizes = { ...change.sizes }
    return this
  }

  clone(): CheckpointState {
    const copy = new CheckpointState()
    for (const [path, entry] of this.entries) copy.entries.set(path, entry)
    for (const [id, set] of this.changeSets) copy.changeSets.set(id, set)
    for (const [hash, blob] of this.blobs) copy.blobs.set(hash, { ...blob })
    copy.isThinned = this.isThinned
    copy.sizes = { ...this.sizes }
    return copy
  }

  move(moved: ReadonlyMap<string, Location>): this {
    for (const [hash, location] of moved) {
      const blob = this.blobs.get(hash)
      if (blob) Object.assign(blob, location)
    }
    return this
  }

  renamePacks(names: ReadonlyMap<string, string>): void {
    for (const blob of this.blobs.values()) blob.pack = names.get(blob.pack) ?? blob.pack
  }

  /** Live bytes in each pack. */
  packUse(): Map<string, number> {
    const use = new Map<string, number>()
    for (const { pack, stored } of this.blobs.values()) use.set(pack, (use.get(pack) ?? 0) + stored)
    return use
  }

  /** The whole state, in records that each take little time to write and to read. */
  *snapshot(): Iterable<ManifestRecord> {
    const named = new Set<string>()
    let last: ManifestRecord | undefined
    for (const { put, sets, sides } of this.#parts()) {
      if (last) yield { ...last, more: true }
      const located = new Map<string, Location>()
      for (const entry of [...put, ...sides]) {
        if (entry.type !== 'file' || named.has(entry.hash)) continue
        named.add(entry.hash)
        const blob = this.blobs.get(entry.hash)
        if (blob) located.set(entry.hash, blob)
      }
      last = manifestRecord({ snapshot: !last, put, deleted: [], sets, drop: [], isThinned: this.isThinned }, located)
    }
    if (last) yield last
  }

  *#parts(): Iterable<{ put: WorkspaceEntry[]; sets: SetRecord[]; sides: WorkspaceEntry[] }> {
    let put: WorkspaceEntry[] = []
    let chars = 0
    for (const entry of this.entries.values()) {
      put.push(entry)
      chars += entry.path.length
      if (put.length < RECORD_ENTRIES && chars <= RECORD_CHARS) continue
      yield { put, sets: [], sides: [] }
      put = []
      chars = 0
    }
    yield { put, sets: [], sides: [] }
    let sets: SetRecord[] = []
    let sides: WorkspaceEntry[] = []
    for (const set of this.changeSets.values()) {
      for (let at = 0; at === 0 || at < set.changes.length; at += RECORD_ENTRIES) {
        const changes = set.changes.slice(at, at + RECORD_ENTRIES)
        sets.push({ ...setRecord(set, changes), ...(at > 0 && { more: true }) })
        sides.push(...changes.flatMap(sidesOf))
        if (sides.length < RECORD_ENTRIES) continue
        yield { put: [], sets, sides }
        sets = []
        sides = []
      }
    }
    if (sets.length > 0) yield { put: [], sets, sides }
  }
}

export function deltaRecord(change: Change, added: ReadonlyMap<string, Location>): ManifestRecord {
  return manifestRecord({ snapshot: false, ...change }, added)
}

/** Whether the content must be stored with the change, because the state does not have it. */
export function isNeeded(change: Change, hash: string): boolean {
  return isNamed(change.refs.get(hash) ?? NO_REFS)
}

/** Returns undefined if the record does not fit the state before it. */
export function replay(state: CheckpointState, entry: ManifestRecord): CheckpointState | undefined {
  const locations = new Map<string, Location>()
  for (const [hash, pack, offset, length, stored = length] of entry.blobs) {
    const name = entry.packs[pack]
    if (name === undefined) return undefined
    locations.set(hash, { pack: name, offset, length, stored })
  }
  const before = entry.snapshot ? new CheckpointState() : state
  try {
    const keep = entry.sets?.map(setFromRecord) ?? []
    const change = before.plan({ ...entry, keep }, (hash) => locations.get(hash))
    change.isThinned ||= entry.thinned === true
    return before.apply(change, (hash) => locations.get(hash) ?? { pack: '', offset: 0, length: 0, stored: 0 })
  } catch {
    return undefined
  }
}
