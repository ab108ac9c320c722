import type { ServerToClient } from '../../../contract/live.ts'
import type { StoredEvent } from '../../storage/event-log.ts'

/** Events that are published but not stored. */
export type LiveName = 'agent:thinking' | 'agent:delta' | 'tool:output'

export interface FeedListener {
  stored?(sessionId: string, events: StoredEvent[]): void
  live?(sessionId: string, type: LiveName, data: object): void
  /** The session is no more. */
  gone?(sessionId: string): void
  /** The store was emptied: sessions may be gone, with nobody to tell which. */
  emptied?(): void
  /** The session went with a store that was emptied. */
  lost?(sessionId: string): void
  /** Its token no longer opens it: whoever is connected must prove anew who they are. */
  revoked?(sessionId: string): void
}

/**
 * Where a session's events go once they are stored, and what is not stored at all. Knows no socket; faces subscribe. A listener
 * that fails stops neither the others nor the work that it hears of.
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

  gone(sessionId: string): void {
    this.#each((listener) => listener.gone?.(sessionId))
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
