import type { Server, Transport } from '@modelcontextprotocol/server'
import { type Caller, LOCAL_OWNER } from '../../calls/caller.ts'
import { type ClientConnection, connectClient } from './client-connection.ts'
import type { Exposed } from './exposed.ts'
import { cancelledOf, type Listen, listenOf } from './listen-filter.ts'
import { watchWhile } from './watch-while.ts'

const DISCOVER_MS = 10_000

/** The pass-through mode for the one client on stdin and stdout. */
export class ExposedStdio {
  readonly #open: () => Promise<Exposed>
  readonly #caller: Caller = { owner: LOCAL_OWNER, door: 'stdio' }
  readonly #listening = new Map<unknown, AbortController>()
  #connection: ClientConnection | undefined
  #exposed: Exposed | undefined

  constructor(open: () => Promise<Exposed>) {
    this.#open = open
  }

  /** Called for the first message, and again if a client falls back from the newer revision to an older one. */
  readonly createServer = async ({ era }: { era: 'legacy' | 'modern' }): Promise<Server> => {
    this.#exposed = await this.#open()
    const seen = this.#exposed.discoverServers(this.#caller, AbortSignal.timeout(DISCOVER_MS))
    // The greeting has a single server's instructions. Of several, the first list waits for what it lists.
    if (this.#exposed.only !== undefined) await seen
    this.#connection = connectClient(this.#exposed, this.#caller, era)
    return this.#connection.server
  }

  /** The way to call this tool without the SDK, if there is one. */
  fastCalls(tool: string): Pick<ClientConnection, 'call'> | undefined {
    return this.#connection?.isPlain(tool) ? this.#connection : undefined
  }

  /** The SDK serves a subscription stream by itself; the servers must learn which resources are in it. */
  tap(transport: Transport): void {
    const deliver = transport.onmessage
    transport.onmessage = (message, extra) => {
      const listen = listenOf(message)
      if (listen && listen.uris.length > 0) {
        // Nobody awaits this, and an unhandled rejection would end the process.
        this.#watch(listen).catch((error) => transport.onerror?.(error))
      }
      const cancelled = cancelledOf(message)
      if (cancelled !== undefined) this.#unwatch(cancelled)
      deliver?.(message, extra)
    }
  }

  close(): void {
    this.#connection?.lanes.close()
    this.#exposed?.close()
  }

  async #watch({ id, uris }: Listen): Promise<void> {
    const until = new AbortController()
    this.#listening.get(id)?.abort()
    this.#listening.set(id, until)
    const exposed = await this.#open()
    const lane = this.#lane()
    if (lane !== undefined) await watchWhile(exposed, lane, uris, until.signal)
  }

  #unwatch(id: unknown): void {
    this.#listening.get(id)?.abort()
    this.#listening.delete(id)
  }

  /** The lane of the client's calls, if there is one: their effects are what the client wants to hear about. */
  #lane() {
    const lanes = this.#connection?.lanes
    return (
      lanes?.all()[0] ??
      lanes?.borrow({ server: '', caller: this.#caller, capabilities: {}, isModern: false, alone: false }).lane
    )
  }
}
