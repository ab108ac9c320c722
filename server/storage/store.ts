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
  /** Reports settings of the store that could make it lose writes which it has confirmed. */
  findRisks?(): Promise<string[]>
  close(): Promise<void>
}
