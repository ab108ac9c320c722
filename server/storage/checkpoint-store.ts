/**
 * The files of every session, outside its container. Content-addressed; a commit's cost grows with what changed. Each epoch
 * writes files of its own, so an old owner that wakes up changes nothing that a newer one reads.
 */
import type { WorkspaceEntry } from '../../workspace-server/protocol.ts'

export interface CheckpointDelta {
  put: WorkspaceEntry[]
  deleted: string[]
  /** The whole workspace: entries not in `put` are gone. */
  complete: boolean
}

export interface Checkpoint {
  /** Entries by path, as last committed. */
  readonly entries: ReadonlyMap<string, WorkspaceEntry>
  has(hash: string): boolean
  /** Adds content under its SHA-256 (hex); returns the hash. Durable only with the next commit. */
  addBlob(content: Uint8Array | AsyncIterable<Uint8Array>): Promise<{ hash: string; size: number }>
  /** Durable when it resolves. Throws when a file's content is missing. */
  commit(delta: CheckpointDelta): Promise<void>
  /** Content in chunks of at most `chunkBytes`. Throws internal `checkpoint_damaged` when the bytes are not what they were. */
  read(hash: string, chunkBytes: number): AsyncIterable<Uint8Array>
  close(): Promise<void>
}

export interface CheckpointStore {
  /** Loads what was last committed under any lower or equal epoch. */
  open(sessionId: string, epoch: number): Promise<Checkpoint>
  /** Whether anything is stored of this session. */
  has(sessionId: string): Promise<boolean>
  remove(sessionId: string): Promise<void>
  /** Bytes on the disk of these sessions, or of all; measured at most so long ago. */
  bytes(sessionIds?: readonly string[], maxAgeMs?: number): Promise<number>
  /** Removes sessions not committed to or opened for this long, but for those in `spared`; returns how many. */
  prune(olderThanMs: number, spared?: ReadonlySet<string>): Promise<number>
}
