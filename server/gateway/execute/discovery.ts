import { setTimeout as delay } from 'node:timers/promises'
import { messageOf } from '../../lib/errors.ts'
import { StartGate } from '../../lib/waiting/start-gate.ts'
import type { CallContext } from '../asking/tool-request.ts'
import type { GatewayServices } from '../gateway-services.ts'

const WAIT_MS = 3000
const FORGET_FAILURE_MS = 60_000
/** Fewer than may start at once, so that a call of a named server need not wait for hundreds of others. */
const AT_ONCE = 3
/** A server that was started only to list its tools keeps running for the call that may follow; of many, most are not needed. */
const KEPT_RUNNING = 16

export interface Discovered {
  /** Servers that have still never been seen. */
  pending: string[]
  /** The pending servers that have not failed before: they may soon be there. */
  starting: string[]
  failed: { server: string; reason: string }[]
}

/**
 * Lists servers that were never seen, a few at a time; callers wait only briefly. Per owner: a server may fail with the
 * credentials of one owner only, and its error may quote their data.
 */
export class Discovery {
  readonly #running = new Map<string, Promise<void>>()
  readonly #failed = new Map<string, { reason: string; at: number }>()
  readonly #everFailed = new Set<string>()
  readonly #gate = new StartGate(AT_ONCE)
  #room: number

  constructor(keptRunning = KEPT_RUNNING) {
    this.#room = keptRunning
  }

  async discover(
    { index, connections }: GatewayServices,
    { caller, signal }: Pick<CallContext, 'caller' | 'signal'>,
    waitMs = WAIT_MS
  ): Promise<Discovered> {
    const keyOf = (server: string) => JSON.stringify([server, caller.owner])
    this.#forget()
    for (const server of index.unseen()) {
      const key = keyOf(server)
      if (this.#running.has(key) || this.#failed.has(key)) continue
      // Not the caller's signal: the next caller benefits from what this one did not wait for.
      const { signal: never } = new AbortController()
      const looking = this.#gate
        .run(() => connections.list(server, { caller, signal: never }))
        .then(
          () => {
            this.#failed.delete(key)
            const connection = connections.connection(server, caller)
            if (--this.#room < 0 && connection.busy === 0) void connection.stop()
          },
          (error) => {
            this.#everFailed.add(key)
            this.#failed.set(key, { reason: messageOf(error), at: Date.now() })
          }
        )
      this.#running.set(
        key,
        looking.finally(() => this.#running.delete(key))
      )
    }
    if (this.#running.size > 0) {
      const timeout = delay(waitMs, undefined, { ref: false, signal }).catch(() => {})
      await Promise.race([Promise.all(this.#running.values()), timeout])
    }
    const unseen = index.unseen()
    const pending = unseen.filter((server) => this.#running.has(keyOf(server)))
    return {
      pending,
      starting: pending.filter((server) => !this.#everFailed.has(keyOf(server))),
      failed: unseen.flatMap((server) => {
        const failure = this.#failed.get(keyOf(server))
        return failure && !this.#running.has(keyOf(server)) ? [{ server, reason: failure.reason }] : []
      })
    }
  }

  #forget(): void {
    for (const [key, { at }] of this.#failed) if (Date.now() - at >= FORGET_FAILURE_MS) this.#failed.delete(key)
  }
}
