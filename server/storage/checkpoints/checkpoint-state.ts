import type { WorkspaceEntry } from '../../../workspace-server/protocol.ts'
import { AppError } from '../../lib/errors.ts'
import type { CheckpointDelta } from '../checkpoint-store.ts'
import type { ManifestRecord } from './manifest-record.ts'
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

export interface Blob extends Location {
  /** Number of entries with this content. A blob without entries is dropped. */
  refs: number
}

/** A delta that was checked, and the size of the state with it. */
export interface Change {
  put: WorkspaceEntry[]
  deleted: string[]
  /** By content: how much the number of entries changes. */
  refs: Map<string, number>
  blobBytes: number
  entryBytes: number
  fileBytes: number
}

const BLOB_ROW_BYTES = 100
const RECORD_ENTRIES = 2000
const RECORD_CHARS = 1024 * 1024

/**
 * The files of a session and the location of their content. It is in memory only, and the cost of a change depends on its size.
 */
export class CheckpointState {
  readonly entries = new Map<string, WorkspaceEntry>()
  readonly blobs = new Map<string, Blob>()
  blobBytes = 0
  /** The size of all entries in a manifest. */
  entryBytes = 0
  /** The size of all files as programs see it: with runs of zeros, and the same content as often as it occurs. */
  fileBytes = 0

  /** The size that counts against the limit. */
  get weight(): number {
    return this.blobBytes + this.entryBytes
  }

  /** Approximate size of a snapshot in a manifest. */
  get manifestBytes(): number {
    return this.entryBytes + this.blobs.size * BLOB_ROW_BYTES
  }

  /** Checks a delta without changing anything. `sizeOf` knows content that is not part of the state yet. */
  plan(delta: CheckpointDelta, sizeOf: (hash: string) => ContentSize | undefined): Change {
    const put = new Map<string, WorkspaceEntry>()
    for (const entry of delta.put) put.set(entry.path, this.#checked(entry, sizeOf))
    const deleted = [...new Set(delta.deleted)].filter((path) => this.entries.has(path) && !put.has(path))
    const change: Change = {
      put: [...put.values()],
      deleted,
      refs: new Map(),
      blobBytes: this.blobBytes,
      entryBytes: this.entryBytes,
      fileBytes: this.fileBytes
    }
    for (const entry of change.put) {
      count(change, this.entries.get(entry.path), -1)
      count(change, entry, 1)
    }
    for (const path of deleted) count(change, this.entries.get(path), -1)
    for (const [hash, by] of change.refs) {
      const blob = this.blobs.get(hash)
      if (!blob && by > 0) change.blobBytes += sizeOf(hash)?.stored ?? 0
      if (blob && blob.refs + by === 0) change.blobBytes -= blob.stored
    }
    return change
  }

  #checked(entry: WorkspaceEntry, sizeOf: (hash: string) => ContentSize | undefined): WorkspaceEntry {
    const stored = storedEntry(entry)
    if (stored.type !== 'file') return stored
    const content = this.blobs.get(stored.hash) ?? sizeOf(stored.hash)
    if (content) return { ...stored, size: content.length }
    const message = 'A file can not be stored because its content was never added.'
    throw new AppError('invalid', 'checkpoint_content_missing', message)
  }

  /** `locate` returns the location of content that is new with the change. */
  apply(change: Change, locate: (hash: string) => Location): this {
    for (const path of change.deleted) this.entries.delete(path)
    for (const entry of change.put) this.entries.set(entry.path, entry)
    for (const [hash, by] of change.refs) {
      const blob = this.blobs.get(hash)
      if (blob) blob.refs += by
      else if (by > 0) this.blobs.set(hash, { ...locate(hash), refs: by })
      if (blob?.refs === 0) this.blobs.delete(hash)
    }
    this.blobBytes = change.blobBytes
    this.entryBytes = change.entryBytes
    this.fileBytes = change.fileBytes
    return this
  }

  clone(): CheckpointState {
    const copy = new CheckpointState()
    for (const [path, entry] of this.entries) copy.entries.set(path, entry)
    for (const [hash, blob] of this.blobs) copy.blobs.set(hash, { ...blob })
    copy.blobBytes = this.blobBytes
    copy.entryBytes = this.entryBytes
    copy.fileBytes = this.fileBytes
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
    const rest = this.entries.values()
    for (let isFirst = true, hasMore = true; hasMore; isFirst = false) {
      const put: WorkspaceEntry[] = []
      const located = new Map<string, Location>()
      let chars = 0
      hasMore = false
      for (let next = rest.next(); !next.done; next = rest.next()) {
        const entry = next.value
        put.push(entry)
        chars += entry.path.length
        const blob = entry.type === 'file' && !named.has(entry.hash) ? this.blobs.get(entry.hash) : undefined
        if (entry.type === 'file' && blob) located.set(entry.hash, blob)
        if (entry.type === 'file') named.add(entry.hash)
        hasMore = put.length === RECORD_ENTRIES || chars > RECORD_CHARS
        if (hasMore) break
      }
      yield { ...record(isFirst, put, [], located), ...(hasMore ? { more: true } : {}) }
    }
  }
}

export function deltaRecord(change: Change, added: ReadonlyMap<string, Location>): ManifestRecord {
  return record(false, change.put, change.deleted, added)
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
    const change = before.plan(entry, (hash) => locations.get(hash))
    return before.apply(change, (hash) => locations.get(hash) ?? { pack: '', offset: 0, length: 0, stored: 0 })
  } catch {
    return undefined
  }
}

function record(
  snapshot: boolean,
  put: WorkspaceEntry[],
  deleted: string[],
  located: ReadonlyMap<string, Location>
): ManifestRecord {
  const packs = new Map<string, number>()
  const blobs = [...located].map(([hash, { pack, offset, length, stored }]): ManifestRecord['blobs'][number] => {
    const index = packs.get(pack) ?? packs.size
    packs.set(pack, index)
    return stored === length ? [hash, index, offset, length] : [hash, index, offset, length, stored]
  })
  return { v: blobs.some((blob) => blob.length === 5) ? 2 : 1, snapshot, put, deleted, packs: [...packs.keys()], blobs }
}

function count(change: Change, entry: WorkspaceEntry | undefined, by: 1 | -1): void {
  if (!entry) return
  change.entryBytes += by * entryBytes(entry)
  if (entry.type !== 'file') return
  change.fileBytes += by * entry.size
  change.refs.set(entry.hash, (change.refs.get(entry.hash) ?? 0) + by)
}
