/**
 * A session's append-only log, with `seq` from 1 and without gaps. It is the source of truth for a conversation; everything else
 * is computed from it.
 */

export interface NewEvent {
  type: string
  data: Record<string, unknown>
  /** A session has at most one event with this key. So only the first of two decisions, messages or ends of a turn counts. */
  key?: string
}

export interface StoredEvent extends Omit<NewEvent, 'key'> {
  seq: number
  /** Time of the store's clock, in ms. */
  at: number
}

export interface ReadOptions {
  after?: number
  limit?: number
  /** Large fields of the events up to this seq are null: the caller knows these events, or does not need the fields. */
  bareUntil?: number
}

export interface EventLog {
  /**
   * Appends all events or none and returns them as stored. With `epoch`, throws conflict `lease_lost` unless it is the session's
   * current epoch. Throws conflict `event_exists` if a key is taken, and invalid `event_too_large` over 24 MB (one event
   * as JSON; 1 MB without its large fields). Large fields are stored once per session and content.
   */
  append(sessionId: string, events: NewEvent[], options?: { epoch?: number }): Promise<StoredEvent[]>
  /**
   * Returns events in order, after `after` (0: from the start): at most `limit` (default 1000), fewer if they are large, none at
   * the end.
   */
  read(sessionId: string, options?: ReadOptions): Promise<StoredEvent[]>
  lastSeq(sessionId: string): Promise<number>
  /** Size in bytes of the events of these sessions, or of all. */
  bytes(sessionIds?: readonly string[]): Promise<number>
  /** With `epoch`, throws conflict `lease_lost` unless it is the session's current epoch. */
  remove(sessionId: string, epoch?: number): Promise<void>
}
