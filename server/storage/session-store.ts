/**
 * Who owns which session: the lease and its growing epoch, the container bound to it, and when it was last used. All times
 * are the store's own clock, in ms. Epochs only grow: max(previous + 1, now), so that an emptied store can't hand out an old one.
 */

export interface SessionRecord {
  sessionId: string
  epoch: number
  /** The instance that holds the lease, null when released. */
  holder: string | null
  leaseUntil: number
  /** A call or turn is in flight: nobody else may take the session while the lease lasts. */
  busy: boolean
  /** Counts against the limit of live sandboxes. */
  live: boolean
  containerId: string | null
  createdAt: number
  activeAt: number
}

export interface StoreOrigin {
  id: string
  at: number
}

/** How long the store remembers an instance that has ended. */
export const ENDED_KEPT_MS = 7 * 86_400_000

export type AcquireResult =
  | { granted: true; record: SessionRecord }
  | { granted: false; holder: string; retryInMs: number }

export interface SessionStore {
  now(): Promise<number>
  /** Made once, and kept: a store that was emptied gets back the id that this process, or its data folder, remembers. */
  deploymentId(): Promise<string>
  /** When this store began. It changes when the store is emptied: what such a store does not know proves nothing. */
  origin(): Promise<StoreOrigin>
  heartbeat(instanceId: string, ttlMs: number): Promise<void>
  /** Instances whose last heartbeat has not run out. */
  instances(): Promise<string[]>
  /** Instances that were seen here and whose heartbeat has run out, or that said farewell; kept for a week. */
  endedInstances(): Promise<string[]>
  /** The instance is gone or going: its heartbeat and all its leases end now. */
  farewell(instanceId: string): Promise<void>

  /**
   * Makes the record when there is none. Granted to the holder itself with the same epoch (also when its lease has run out: nobody
   * else took the session meanwhile); to another one, with a higher epoch, when the lease has run out, was released, or the session
   * is not busy. Sets the lease and `busy`, counts as activity.
   */
  acquire(sessionId: string, holder: string, leaseMs: number): Promise<AcquireResult>
  /** Prolongs the lease; false when the epoch is old or the lease was released. Sets `busy`; `activity` also sets activeAt. */
  touch(
    sessionId: string,
    epoch: number,
    options: { leaseMs: number; busy: boolean; activity: boolean }
  ): Promise<boolean>
  /** Gives the lease back; a no-op with an old epoch. */
  release(sessionId: string, epoch: number): Promise<void>
  /** Marks the session live before a container is made for it, unless `maxLive` others are. */
  reserve(sessionId: string, epoch: number, maxLive: number): Promise<'ok' | 'full' | 'lost'>
  /** Sets the container and `live`; false when the epoch is old. */
  bind(sessionId: string, epoch: number, containerId: string): Promise<boolean>
  /** Clears container and `live`; false when the epoch is old. */
  unbind(sessionId: string, epoch: number): Promise<boolean>
  /**
   * Takes over, with a higher epoch and the given lease, live sessions that are not busy (or whose lease has run out), have been
   * idle for `idleMs`, and are held by `holder`, by nobody, or under a lease that has run out. Marks them busy. Atomic per session; at most `limit`.
   */
  takeIdle(holder: string, options: { idleMs: number; leaseMs: number; limit: number }): Promise<SessionRecord[]>

  get(sessionId: string): Promise<SessionRecord | null>
  list(): Promise<SessionRecord[]>
  countLive(): Promise<number>
  /** The sessions that count as live, the longest idle first. */
  listLive(): Promise<SessionRecord[]>
  count(): Promise<number>
  /** Removes the record; false when the epoch is old. */
  remove(sessionId: string, epoch: number): Promise<boolean>
  close(): Promise<void>
}
