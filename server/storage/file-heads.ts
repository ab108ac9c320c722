/**
 * Which manifest of a session's files counts, if the files are in an object store. It is part of the session's record, so it is
 * fenced by the same epoch as the lease: a former owner can write objects, but can't make them count.
 */

/** Objects that were written longer ago than this are never made to count: the collector may be about to delete them. */
export const MAX_UPLOAD_AGE_MS = 12 * 3_600_000

export interface HeadChange {
  epoch: number
  /** The value to replace; null if there is none. */
  known: string | null
  next: string
  /** When the first object that `next` names was about to be written, on the store's clock. */
  since: number
}

/** `lost`: the epoch is old, or there is no session. `changed`: the value is neither the known one nor already `next`. */
export type SwapResult = 'ok' | 'lost' | 'changed' | 'late'

export interface FileHeads {
  read(sessionId: string): Promise<string | null>
  /** Can be repeated: it also succeeds if the value is already `next`. */
  swap(sessionId: string, change: HeadChange): Promise<SwapResult>
  /** Returns false if the epoch is old, or there is no session. */
  clear(sessionId: string, epoch: number): Promise<boolean>
  /** All sessions that have one. */
  list(): Promise<Map<string, string>>
}
