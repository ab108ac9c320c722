import type { EventLog } from './event-log.ts'
import type { FileHeads } from './file-heads.ts'
import type { KeyValueStore } from './key-value-store.ts'
import type { SessionStore } from './session-store.ts'

/** An open store of any adapter. `close` may be called more than once. */
export interface Store {
  sessions: SessionStore
  events: EventLog
  keyValues: KeyValueStore
  heads: FileHeads
  /** Finds settings of the store with which it could lose what it has acknowledged. */
  findRisks?(): Promise<string[]>
  close(): Promise<void>
}
