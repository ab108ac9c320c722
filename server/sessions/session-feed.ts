import type { ServerToClient } from '../../contract/live.ts'
import type { StoredEvent } from '../storage/event-log.ts'
import type { LiveName } from './chat-options.ts'

export interface FeedListener {
  stored?(sessionId: string, events: StoredEvent[]): void
  live?(sessionId: string, type: LiveName, data: object): void
  /** The session is no more. */
  gone?(sessionId: string): void
}

/** Where a session's events go once they are stored, and what is not stored at all. Knows no socket; faces subscribe. */
export class SessionFeed {
  readonly #listeners = new Set<FeedListener>()

  subscribe(listener: FeedListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  readonly stored = (sessionId: string, events: StoredEvent[]): void => {
    for (const listener of this.#listeners) listener.stored?.(sessionId, events)
  }

  readonly live = <T extends LiveName>(sessionId: string, type: T, data: Parameters<ServerToClient[T]>[0]): void => {
    for (const listener of this.#listeners) listener.live?.(sessionId, type, data)
  }

  gone(sessionId: string): void {
    for (const listener of this.#listeners) listener.gone?.(sessionId)
  }
}
