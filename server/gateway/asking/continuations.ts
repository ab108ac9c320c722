import { randomBytes, randomUUID } from 'node:crypto'
import { createRequestStateCodec, type RequestStateCodec, type ServerContext } from '@modelcontextprotocol/server'
import { AppError } from '../../lib/errors.ts'
import type { KeyValueStore } from '../../storage/key-value-store.ts'

/** What a client of the newer revisions carries from one round of a call to the next. */
export interface Continuation {
  call: string
  /** What its `inputResponses` answer. */
  asked: string
  /** What was answered before. */
  answers: Record<string, string | null>
}

interface Sealed extends Continuation {
  id: string
}

const KEYS = 'gateway-keys'
const USED = 'gateway-continuations'

/**
 * Seals continuations: they are in the client's hands, so they are signed, expire, and count once, whichever of the processes
 * that share the store is asked.
 */
export class Continuations {
  readonly #keyValues: KeyValueStore
  readonly #ttlSeconds: number
  #codec: Promise<RequestStateCodec<Sealed>> | undefined

  constructor(keyValues: KeyValueStore, ttlSeconds: number) {
    this.#keyValues = keyValues
    this.#ttlSeconds = ttlSeconds
  }

  async mint(continuation: Continuation): Promise<string> {
    return (await this.#open()).mint({ ...continuation, id: randomUUID() })
  }

  /** Throws unless it is ours, fresh and unused. */
  async verify(state: string, context: ServerContext): Promise<Continuation> {
    const { id, ...continuation } = await (await this.#open()).verify(state, context)
    const now = Date.now()
    for (const { key, value } of await this.#keyValues.list(USED)) {
      if (Number(value) < now) await this.#keyValues.remove(USED, key)
    }
    if (await this.#keyValues.add(USED, id, now + 2 * this.#ttlSeconds * 1000)) return continuation
    throw new AppError('conflict', 'approval_stale', 'This answer has been used already: make the call anew.')
  }

  #open(): Promise<RequestStateCodec<Sealed>> {
    this.#codec ??= this.#key().then(
      (key) => createRequestStateCodec<Sealed>({ key, ttlSeconds: this.#ttlSeconds }),
      (error) => {
        this.#codec = undefined
        throw error
      }
    )
    return this.#codec
  }

  async #key(): Promise<string> {
    const fresh = randomBytes(32).toString('base64url')
    return (await this.#keyValues.add(KEYS, 'continuations', fresh))
      ? fresh
      : String(await this.#keyValues.get(KEYS, 'continuations'))
  }
}
