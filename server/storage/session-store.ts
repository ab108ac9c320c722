/**
 * Stores who owns which session: the lease and its growing epoch, the bound container, and the time of last use. All times are
 * the store's own clock, in ms. Epochs only grow: max(previous + 1, now), so that an emptied store can't hand out an old one.
 */

export interface SessionRecord {
  sessionId: string
  epoch: number
  /** The instance that holds the lease; null if it was released. */
  holder: string | null
  leaseUntil: number
  /** A call or turn is running: nobody else may take the session while the lease lasts. */
  busy: boolean
  /** Whether it counts against the limit of live sandboxes. */
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
  /** Created once and kept. A store that was emptied gets the id back from this process or its data folder. */
  deploymentId(): Promise<string>
  /** When this store was created. It changes when the store is emptied: what such a store does not know proves nothing. */
  origin(): Promise<StoreOrigin>
  heartbeat(instanceId: string, ttlMs: number): Promise<void>
  /** Instances whose last heartbeat has not expired. */
  instances(): Promise<string[]>
  /** Instances that were seen here and whose heartbeat has expired, or that have signed off; kept for a week. */
  endedInstances(): Promise<string[]>
  /** Ends the heartbeat and all leases of an instance that is gone or shutting down. */
  signOff(instanceId: string): Promise<void>

  /**
   * Creates the record if there is none. The holder itself gets the same epoch (even if its lease has expired, because nobody
   * else took the session meanwhile). Another holder gets a higher epoch, if the lease has expired or was released, or the
   * session is not busy. Sets the lease and `busy`, and counts as activity.
   */
  acquire(sessionId: string, holder: string, leaseMs: number): Promise<AcquireResult>
  /**
   * Extends the lease; returns false if the epoch is old or the lease was released. Sets `busy`; `activity` also sets activeAt.
   */
  touch(
    sessionId: string,
    epoch: number,
    options: { leaseMs: number; busy: boolean; activity: boolean }
  ): Promise<boolean>
  /** Sets activeAt and nothing else. Does nothing if there is no record. */
  visit(sessionId: string): Promise<void>
  /** Releases the lease; does nothing with an old epoch. */
  release(sessionId: string, epoch: number): Promise<void>
  /**
   * Sets how many forks an instance has, unless it would have more than before and there would be more than `maxLive` live sessions and
   * forks in all; then it returns false. Forks of an instance count while its heartbeat lasts.
   */
  reserveForks(instanceId: string, forks: number, maxLive: number): Promise<boolean>
  /** Marks the session as live before a container is created for it, unless `maxLive` other sessions and forks are live. */
  reserve(sessionId: string, epoch: number, maxLive: number): Promise<'ok' | 'full' | 'lost'>
  /** Sets the container and `live`; returns false if the epoch is old. */
  bind(sessionId: string, epoch: number, containerId: string): Promise<boolean>
  /** Clears the container and `live`; returns false if the epoch is old. */
  unbind(sessionId: string, epoch: number): Promise<boolean>
  /**
   * Takes over, with a higher epoch and the given lease, live sessions that have been idle for `idleMs` and that are either not
   * busy and held by `holder` or nobody, or whose lease has expired. Marks them busy. Atomic per session; at most `limit`.
   */
  takeIdle(holder: string, options: { idleMs: number; leaseMs: number; limit: number }): Promise<SessionRecord[]>

  get(sessionId: string): Promise<SessionRecord | null>
  list(): Promise<SessionRecord[]>
  countLive(): Promise<number>
  /** The live sessions, longest idle first. */
  listLive(): Promise<SessionRecord[]>
  count(): Promise<number>
  /** Removes the record; returns false if the epoch is old. */
  remove(sessionId: string, epoch: number): Promise<boolean>
  close(): Promise<void>
}
