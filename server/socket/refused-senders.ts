import type { IncomingMessage } from 'node:http'
import type { Server } from 'socket.io'
import type { SenderCheck } from '../sessions/access/sender-check.ts'

interface Options {
  instance: { readonly needsToken: boolean }
  senders: Pick<SenderCheck, 'check'>
}

interface Connection {
  id: string
  request: IncomingMessage
  once(event: 'close', listener: () => void): unknown
}

type Next = (error?: unknown) => void

/**
 * Connections of programs that may not act here (`sender-check.ts`). The program is looked up while its request is open: with polling,
 * each request can come over another TCP connection, which may be closed when the next one comes. The connection is refused with a
 * sentence when it asks to come in.
 */
export class RefusedSenders {
  readonly #options: Options
  /** By the first request of the connection. */
  readonly #refusals = new WeakMap<IncomingMessage, unknown>()

  constructor(engine: Server['engine'], options: Options) {
    this.#options = options
    // With AUTH_TOKEN, anyone can send requests, and looking up the sender costs too much before the token was shown.
    if (options.instance.needsToken) return
    const refused = new Set<string>()
    engine.on('connection', (connection: Connection) => {
      if (!this.#refusals.has(connection.request)) return
      refused.add(connection.id)
      connection.once('close', () => refused.delete(connection.id))
    })
    engine.use((request: IncomingMessage & { _query?: { sid?: string } }, _response: unknown, next: Next) => {
      const refuse = (error: unknown) => {
        const sid = request._query?.sid
        if (!sid) this.#refusals.set(request, error)
        // A connection that was let in takes nothing from another program.
        next(!sid || refused.has(sid) ? undefined : error)
      }
      options.senders
        .check(request, 'action')
        .then(() => next())
        .catch(refuse)
    })
  }

  /** Rejects if the connection that began with this request is refused. */
  async check(first: IncomingMessage): Promise<void> {
    if (this.#refusals.has(first)) throw this.#refusals.get(first)
    if (this.#options.instance.needsToken) await this.#options.senders.check(first, 'action')
  }
}
