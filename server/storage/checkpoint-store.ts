/**
 * The files of every session, stored outside its container by content. The cost of a commit depends only on what changed. Each
 * epoch writes its own files, so a former owner that wakes up can't change what a newer owner reads.
 */
import type { VersionAbout } from '../../contract/effects/effect-replies.ts'
import type { WorkspaceEntry } from '../../workspace-server/protocol.ts'

/** A change of one path. Null means that there was, or is, nothing. */
export interface StoredChange {
  path: string
  before: WorkspaceEntry | null
  after: WorkspaceEntry | null
  /** The deleted path that this new file was renamed from, if the two are similar. The link counts only while the set has both paths. */
  from?: string
}

/**
 * Changes of the workspace's files, each path once. An `open` set waits for a decision. A `version` was applied to the workspace;
 * old ones are removed to save space. A `part` is what one call has done in a set of the other kinds: parts are removed before any version.
 * The content of both sides is kept as long as the set.
 */
export interface StoredChangeSet {
  id: string
  kind: 'open' | 'version' | 'part'
  at: number
  about: VersionAbout
  changes: readonly StoredChange[]
}

export interface CheckpointDelta {
  put: WorkspaceEntry[]
  deleted: string[]
  /** Removes these change sets, before those of `keep` are added. */
  drop?: string[]
  /** Adds change sets. A version grows if there is one with its id; any other set with its id is replaced. */
  keep?: StoredChangeSet[]
}

export interface Checkpoint {
  /** Entries by path, as of the last commit. */
  readonly entries: ReadonlyMap<string, WorkspaceEntry>
  /** By id, the oldest first. */
  readonly changeSets: ReadonlyMap<string, StoredChangeSet>
  /** Old versions were removed to save space. */
  readonly isThinned: boolean
  /** False also for content that a commit without an answer may have dropped. */
  has(hash: string): boolean
  /**
   * Adds content under its SHA-256 (hex) and returns the hash. It becomes durable with the next commit, and is forgotten if that
   * names it neither as a file nor in a change set.
   */
  addBlob(content: Uint8Array | AsyncIterable<Uint8Array>): Promise<{ hash: string; size: number }>
  /** Durable when it resolves: all of it or, after a crash, nothing. Throws if a file's content is missing. */
  commit(delta: CheckpointDelta): Promise<void>
  /**
   * Brings the entries up to date after a commit whose answer was lost. Returns whether that commit counts, and throws while this can't
   * be told. A commit does this first.
   */
  settle(): Promise<boolean>
  /** Reads content in chunks of at most `chunkBytes`. Throws `checkpoint_damaged` (kind internal) if the bytes have changed. */
  read(hash: string, chunkBytes: number): AsyncIterable<Uint8Array>
  /** Reads many small contents at once. Undefined for those that must be read one by one. Throws as `read` does. */
  readSmall(hashes: readonly string[]): Promise<(Uint8Array | undefined)[]>
  close(): Promise<void>
}

/** Content that a session's conversation names by its SHA-256 (hex), such as an image. It is removed with the session. */
export interface ContentStore {
  /** Durable when it resolves, with the hash. */
  putContent(sessionId: string, bytes: Uint8Array): Promise<string>
  /** Returns undefined if this session has no such content. Throws `checkpoint_damaged` (kind internal) if the bytes have changed. */
  getContent(sessionId: string, hash: string): Promise<Buffer | undefined>
  /** For content that nothing names: it goes at once or later. Does nothing if there is none. */
  removeContent(sessionId: string, hash: string): Promise<void>
}

export interface CheckpointStore extends ContentStore {
  /** Loads the last commit of this epoch or any lower one. */
  open(sessionId: string, epoch: number): Promise<Checkpoint>
  /** Whether anything is stored for this session. */
  has(sessionId: string): Promise<boolean>
  /** Throws conflict `lease_lost` if the epoch is old. */
  remove(sessionId: string, epoch: number): Promise<void>
  /** Disk usage in bytes of these sessions, or of all; the figure is at most `maxAgeMs` old. */
  bytes(sessionIds?: readonly string[], maxAgeMs?: number): Promise<number>
  /** Removes sessions that were not opened or committed to for this long, except those in `spared`. Returns their number. */
  prune(olderThanMs: number, spared?: ReadonlySet<string>): Promise<number>
}

/** Whether both are the same apart from their times. */
export function isSameEntry(a: WorkspaceEntry | null, b: WorkspaceEntry | null): boolean {
  if (a === null || b === null) return a === b
  if (a.type === 'file' && b.type === 'file') return a.hash === b.hash && a.mode === b.mode
  if (a.type === 'dir' && b.type === 'dir') return a.mode === b.mode
  return a.type === 'link' && b.type === 'link' && a.target === b.target
}

/** A checkpoint that someone else closes. */
export function borrowed(checkpoint: Checkpoint): Checkpoint {
  const { entries, changeSets, isThinned } = checkpoint
  return {
    ...{ entries, changeSets, isThinned },
    has: (hash) => checkpoint.has(hash),
    addBlob: (content) => checkpoint.addBlob(content),
    commit: (delta) => checkpoint.commit(delta),
    settle: () => checkpoint.settle(),
    read: (hash, chunkBytes) => checkpoint.read(hash, chunkBytes),
    readSmall: (hashes) => checkpoint.readSmall(hashes),
    close: async () => {}
  }
}
