/**
 * The files of a fork: those of the workspace when it was opened, and what has changed since. It stands in for the checkpoint when a
 * fork's files are restored and synced. Content goes to the session's checkpoint; the workspace's own entries are never changed.
 */
import type { WorkspaceEntry } from '../../../../workspace-server/protocol.ts'
import {
  type Checkpoint,
  type CheckpointDelta,
  isSameEntry,
  type StoredChange
} from '../../../storage/checkpoint-store.ts'

type Entries = ReadonlyMap<string, WorkspaceEntry>

export class ForkEntries implements Checkpoint {
  readonly changeSets: Checkpoint['changeSets'] = new Map()
  readonly isThinned = false
  readonly #content: () => Checkpoint
  #entries = new Map<string, WorkspaceEntry>()
  #base: Entries = new Map()
  /** The entry at each path before the fork changed it. */
  readonly #before = new Map<string, WorkspaceEntry | null>()

  /** `content` is the session's checkpoint, and `changes` were made in an earlier fork. */
  constructor(content: () => Checkpoint, changes: readonly StoredChange[] = []) {
    this.#content = content
    this.rebase(changes)
  }

  /** Starts again from the files of the workspace as they are now, with these changes. */
  rebase(changes: readonly StoredChange[]): void {
    this.#base = new Map(this.#content().entries)
    this.#entries = new Map(this.#base)
    this.#before.clear()
    for (const { path, before, after } of changes) {
      this.#before.set(path, before)
      if (after) this.#entries.set(path, after)
      else this.#entries.delete(path)
    }
  }

  get entries(): Entries {
    return this.#entries
  }

  /** The changes of the fork, in the order of paths. Paths that are as they were before are left out. */
  get changes(): StoredChange[] {
    return [...this.#before]
      .map(([path, before]) => ({ path, before, after: this.#entries.get(path) ?? null }))
      .filter(({ before, after }) => !isSameEntry(before, after))
      .sort((a, b) => (a.path < b.path ? -1 : 1))
  }

  /** Whether the workspace is still as it was when the fork was opened. */
  isBasedOn(entries: Entries): boolean {
    if (entries.size !== this.#base.size) return false
    for (const [path, entry] of entries) if (!isSameEntry(entry, this.#base.get(path) ?? null)) return false
    return true
  }

  /** The changes that turn these files into this fork's. Times of folders don't count: every file written into one changes them. */
  differenceFrom(files: Entries): StoredChange[] {
    const different: StoredChange[] = []
    for (const [path, after] of this.#entries) {
      const before = files.get(path) ?? null
      const isSameTime = after.type === 'dir' || before?.mtimeMs === after.mtimeMs
      if (!isSameTime || !isSameEntry(before, after)) different.push({ path, before, after })
    }
    for (const [path, before] of files) if (!this.#entries.has(path)) different.push({ path, before, after: null })
    return different
  }

  /** The changes are in the workspace now: from here on the fork is a copy of it. */
  markApplied(): void {
    this.#base = new Map(this.#entries)
    this.#before.clear()
  }

  async commit({ put, deleted }: CheckpointDelta): Promise<void> {
    for (const path of deleted) this.#note(path, undefined)
    for (const entry of put) this.#note(entry.path, entry)
  }

  async settle(): Promise<boolean> {
    return false
  }

  #note(path: string, entry: WorkspaceEntry | undefined): void {
    if (!this.#before.has(path)) this.#before.set(path, this.#entries.get(path) ?? null)
    if (entry) this.#entries.set(path, entry)
    else this.#entries.delete(path)
  }

  has(hash: string): boolean {
    return this.#content().has(hash)
  }

  addBlob(content: Uint8Array | AsyncIterable<Uint8Array>): ReturnType<Checkpoint['addBlob']> {
    return this.#content().addBlob(content)
  }

  read(hash: string, chunkBytes: number): AsyncIterable<Uint8Array> {
    return this.#content().read(hash, chunkBytes)
  }

  readSmall(hashes: readonly string[]): ReturnType<Checkpoint['readSmall']> {
    return this.#content().readSmall(hashes)
  }

  async close(): Promise<void> {}
}
