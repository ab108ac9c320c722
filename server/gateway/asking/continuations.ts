import { randomBytes, randomUUID } from 'node:crypto'
import { createRequestStateCodec, type RequestStateCodec, type ServerContext } from '@modelcontextprotocol/server'
import { AppError } from '../../lib/errors.ts'
import type { KeyValueStore } from '../../storage/key-value-store.ts'

/** What a client of the newer revision carries from one round of a call to the next. */
export interface Continuation {
  call: string
  /** Hash of the question that its `inputResponses` answer. */
  asked: string
  /** Earlier answers. */
  answers: Record<string, string | null>
}

interface Sealed extends Continuation {
  id: string
}

const KEYS = 'gateway-keys'
const USED = 'gateway-continuations'

/**
 * Seals continuations. They are in the client's hands, so they are signed, expire, and can be used once, whichever process on the
 * store receives them.
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
    throw new AppError('conflict', 'approval_stale', 'This answer has already been used. Make the call again.')
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
