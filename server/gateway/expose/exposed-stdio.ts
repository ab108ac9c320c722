import type { Server, Transport } from '@modelcontextprotocol/server'
import { messageOf } from '../../lib/errors.ts'
import { type Caller, LOCAL_OWNER } from '../../tools/caller.ts'
import { type ClientConnection, connectClient } from './client-connection.ts'
import type { Exposed } from './exposed.ts'
import { cancelledOf, listenOf } from './listen-filter.ts'
import { watchOn } from './pass-on.ts'

const MEET_MS = 10_000

/** The pass-through mode for the one client on stdin and stdout. */
export class ExposedStdio {
  readonly #open: () => Promise<Exposed>
  readonly #caller: Caller = { owner: LOCAL_OWNER, door: 'stdio' }
  readonly #listening = new Map<unknown, string[]>()
  #connection: ClientConnection | undefined
  #exposed: Exposed | undefined

  constructor(open: () => Promise<Exposed>) {
    this.#open = open
  }

  /** Called for the greeting, and once more when a client that has tried the new revision falls back to an old one. */
  readonly createServer = async ({ era }: { era: 'legacy' | 'modern' }): Promise<Server> => {
    this.#exposed = await this.#open()
    await this.#exposed.meet(this.#caller, AbortSignal.timeout(MEET_MS))
    this.#connection = connectClient(this.#exposed, this.#caller, era)
    return this.#connection.server
  }

  /** The SDK answers a stream of news by itself; the servers have to hear of the resources in it. */
  tap(transport: Transport): void {
    const deliver = transport.onmessage
    transport.onmessage = (message, extra) => {
      const listen = listenOf(message)
      if (listen) void this.#watch(listen.id, listen.uris)
      const cancelled = cancelledOf(message)
      if (cancelled !== undefined) void this.#unwatch(cancelled)
      deliver?.(message, extra)
    }
  }

  close(): void {
    this.#connection?.lanes.close()
    this.#exposed?.close()
  }

  async #watch(id: unknown, uris: string[]): Promise<void> {
    const exposed = await this.#open()
    const lane = this.#lane()
    this.#listening.set(id, uris)
    for (const uri of uris) {
      const [target] = exposed.resourceTargets(uri)
      if (target === undefined || lane === undefined) continue
      await watchOn(exposed, lane, target, AbortSignal.timeout(MEET_MS)).catch((error) =>
        exposed.logger.debug({ server: target.server }, `A subscription failed: ${messageOf(error)}`)
      )
    }
  }

  async #unwatch(id: unknown): Promise<void> {
    const uris = this.#listening.get(id) ?? []
    this.#listening.delete(id)
    for (const uri of uris) {
      const [target] = this.#exposed?.resourceTargets(uri) ?? []
      await (target && this.#lane()?.unwatch(target.server, target.name))?.catch(() => {})
    }
  }

  /** The lane that its calls use, if it has made some: what these do is what it wants to hear of. */
  #lane() {
    const lanes = this.#connection?.lanes
    return (
      lanes?.all()[0] ??
      lanes?.borrow({ server: '', caller: this.#caller, capabilities: {}, isModern: false, alone: false }).lane
    )
  }
}
