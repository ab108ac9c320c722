import type { Logger } from '../../lib/logger.ts'
import type { SandboxEngine } from '../../sandbox/port.ts'
import type { CheckpointStore } from '../../storage/checkpoint-store.ts'
import type { EventLog, NewEvent, StoredEvent } from '../../storage/event-log.ts'
import type { SessionStore } from '../../storage/session-store.ts'

export interface SessionsOptions {
  /** Maximum number of live containers, across all instances. */
  maxSessions: number
  /** Maximum number of these for one owner. */
  maxSandboxesPerOwner: number
  warmPoolSize: number
  /** The network of the sandboxes: `none`, or its name. */
  network: string
  idleMs: number
  janitorIntervalMs: number
  pauseAfterMs: number
  retentionMs: number
  /** How long a crashed instance keeps its sessions from others. */
  leaseMs: number
  /** How long an acquire waits for a session that another instance is working in. */
  acquireTimeoutMs: number
  /** A container younger than this never counts as an orphan. */
  orphanGraceMs: number
  /** Nothing expires until the clocks have run evenly for this long: a clock that was set wrong makes every session look old. */
  clockTrustMs: number
}

export const DEFAULT_SESSIONS_OPTIONS: SessionsOptions = {
  maxSessions: 100,
  maxSandboxesPerOwner: 20,
  warmPoolSize: 2,
  network: 'none',
  idleMs: 900_000,
  janitorIntervalMs: 60_000,
  pauseAfterMs: 30_000,
  retentionMs: 30 * 86_400_000,
  leaseMs: 5_000,
  acquireTimeoutMs: 30_000,
  orphanGraceMs: 15_000,
  clockTrustMs: 900_000
}

export interface SessionsDeps {
  instanceId: string
  engine: SandboxEngine
  store: SessionStore
  events: EventLog
  checkpoints: CheckpointStore
  /** The session's owner, under a name that is the same for all of an owner's sessions. */
  ownerOf: (sessionId: string) => Promise<string>
  logger: Logger
  /** Called with every event that sessions append, after it is stored. */
  publish: (sessionId: string, events: StoredEvent[]) => void
  /** Called with events that the store may have, although it did not answer. */
  unanswered?: ((sessionId: string, events: NewEvent[]) => void) | undefined
  /** Called when the store turns out to have been emptied: conversations and their owners are gone. */
  emptied?: () => Promise<void>
  /**
   * Whether every other instance that ever used this store is dead, which the lock on the data folder proves. Otherwise only the
   * store's record of an instance's end counts.
   */
  isAlone?: boolean
  /** Says yes to one of the instances that share an engine, which then cleans up for all. */
  cleansForAll?: (() => Promise<boolean>) | undefined
  /** Called when a fork was opened, or could not be. */
  forked?: ((end: { ms: number; error?: unknown }) => void) | undefined
  /** Called for every session that was removed because it expired. */
  forgotten: (sessionId: string) => Promise<void>
}
