import type { EventLog } from './event-log.ts'
import type { KeyValueStore } from './key-value-store.ts'
import type { SessionStore } from './session-store.ts'

/** What opening a store gives, whichever adapter it is. `close` may be called more than once. */
export interface Store {
  sessions: SessionStore
  events: EventLog
  keyValues: KeyValueStore
  close(): Promise<void>
}
