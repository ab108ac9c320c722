import { randomUUID } from 'node:crypto'
import { createRequestStateCodec, type RequestStateCodec, type ServerContext } from '@modelcontextprotocol/server'
import { AppError } from '../../lib/errors.ts'
import { Lazy } from '../../lib/waiting/lazy.ts'
import { type KeyValueStore, sharedSecret } from '../../storage/key-value-store.ts'

/** The state that a client of the newer revision carries from one round of a call to the next. */
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

const USED = 'gateway-continuations'

/**
 * Seals continuations. They are in the client's hands, so they are signed, expire, and can be used once, whichever process on the
 * store receives them.
 */
export class Continuations {
  readonly #keyValues: KeyValueStore
  readonly #ttlSeconds: number
  readonly #codec: Lazy<RequestStateCodec<Sealed>>

  constructor(keyValues: KeyValueStore, ttlSeconds: number) {
    this.#keyValues = keyValues
    this.#ttlSeconds = ttlSeconds
    this.#codec = new Lazy(async () => {
      const key = await sharedSecret(keyValues, 'continuations')
      return createRequestStateCodec<Sealed>({ key, ttlSeconds })
    })
  }

  async mint(continuation: Continuation): Promise<string> {
    return (await this.#codec.get()).mint({ ...continuation, id: randomUUID() })
  }

  /** Throws unless it is ours, fresh and unused. */
  async verify(state: string, context: ServerContext): Promise<Continuation> {
    const { id, ...continuation } = await (await this.#codec.get()).verify(state, context)
    const now = Date.now()
    for (const { key, value } of await this.#keyValues.list(USED)) {
      if (Number(value) < now) await this.#keyValues.remove(USED, key)
    }
    if (await this.#keyValues.add(USED, id, now + 2 * this.#ttlSeconds * 1000)) return continuation
    throw new AppError('conflict', 'approval_stale', 'This answer has already been used. Make the call again.')
  }
}
