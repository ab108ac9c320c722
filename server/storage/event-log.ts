/** A session's append-only log: gapless `seq` from 1, per session. The truth about a conversation; everything else is folded from it. */

export interface NewEvent {
  type: string
  data: Record<string, unknown>
  /** At most one event of a session has this key: how of two answers, messages or ends of one turn only the first counts. */
  key?: string
}

export interface StoredEvent extends Omit<NewEvent, 'key'> {
  seq: number
  /** Store clock, ms. */
  at: number
}

export interface EventLog {
  /**
   * Appends all or none and returns them as stored. With `epoch`, throws conflict `lease_lost` unless the session's current epoch
   * is that one; conflict `event_exists` when a key is taken. Throws invalid `event_too_large` over 1 MB (one event as JSON).
   */
  append(sessionId: string, events: NewEvent[], options?: { epoch?: number }): Promise<StoredEvent[]>
  /** In order, after `after` (0: from the start), at most `limit` (default 1000), fewer when they are large; none: there are no more. */
  read(sessionId: string, options?: { after?: number; limit?: number }): Promise<StoredEvent[]>
  lastSeq(sessionId: string): Promise<number>
  /** Bytes of the events of these sessions, or of all. */
  bytes(sessionIds?: readonly string[]): Promise<number>
  remove(sessionId: string): Promise<void>
}
