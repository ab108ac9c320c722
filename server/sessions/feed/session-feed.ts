import type { ServerToClient } from '../../../contract/live.ts'
import type { StoredEvent } from '../../storage/event-log.ts'

/** Events that are published but not stored. */
export type LiveName =
  | 'agent:thinking'
  | 'agent:delta'
  | 'agent:text'
  | 'agent:reasoning'
  | 'tool:output'
  | 'tool:output_so_far'
  | 'tool:progress'
  | 'tool:log'

export interface FeedListener {
  stored?(sessionId: string, events: StoredEvent[]): void
  live?(sessionId: string, type: LiveName, data: object): void
  /** Events were stored some time ago, but nobody could know until now. */
  late?(sessionId: string): void
  /** The session's entry in the list may be different now. */
  changed?(sessionId: string): void
  /** The session was removed. `owner` is the name of its owner, if it had one. */
  gone?(sessionId: string, owner: string | null): void
  /** The store was emptied: sessions may be gone, and nobody knows which. */
  emptied?(): void
  /** The session was lost when the store was emptied. */
  lost?(sessionId: string): void
  /** The session was hidden, or its token is no longer valid: connected clients must prove again that they may enter. */
  revoked?(sessionId: string): void
}

/**
 * Publishes a session's events after they are stored, and those that are never stored. Does not know about sockets; faces
 * subscribe. A listener that fails affects neither the others nor the work it hears about.
 */
export class SessionFeed {
  readonly #listeners = new Set<FeedListener>()
  readonly #onError: (error: unknown) => void

  constructor(onError: (error: unknown) => void = () => {}) {
    this.#onError = onError
  }

  subscribe(listener: FeedListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  readonly stored = (sessionId: string, events: StoredEvent[]): void => {
    this.#each((listener) => listener.stored?.(sessionId, events))
  }

  readonly live = <T extends LiveName>(sessionId: string, type: T, data: Parameters<ServerToClient[T]>[0]): void => {
    this.#each((listener) => listener.live?.(sessionId, type, data))
  }

  late(sessionId: string): void {
    this.#each((listener) => listener.late?.(sessionId))
  }

  changed(sessionId: string): void {
    this.#each((listener) => listener.changed?.(sessionId))
  }

  gone(sessionId: string, owner: string | null = null): void {
    this.#each((listener) => listener.gone?.(sessionId, owner))
  }

  emptied(): void {
    this.#each((listener) => listener.emptied?.())
  }

  lost(sessionId: string): void {
    this.#each((listener) => listener.lost?.(sessionId))
  }

  revoked(sessionId: string): void {
    this.#each((listener) => listener.revoked?.(sessionId))
  }

  #each(tell: (listener: FeedListener) => void): void {
    for (const listener of this.#listeners) {
      try {
        tell(listener)
      } catch (error) {
        this.#onError(error)
      }
    }
  }
}
