/**
 * The tools that each client was offered for its last requests. If it then calls one by name, the router learns from that. Invariant: a
 * request is learned at most once, for the client that made it, and only for a tool that it may have meant.
 */
import type { Caller } from '../../calls/caller.ts'

interface Offer {
  request: string
  /** `server`, a line break, and `tool`. */
  tools: Set<string>
  at: number
}

interface Named {
  server: string
  tool: string
}

/**
 * The matches that count, more than the client is shown: if only the first few could be learned, learning would make the router
 * surer of its mistakes.
 */
export const PLAUSIBLE = 50
const MAX_CLIENTS = 200
const MAX_OFFERS = 5
const FORGET_MS = 600_000

export class RecentOffers {
  readonly #offers = new Map<string, Offer[]>()
  readonly #now: () => number

  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  offered(caller: Caller, request: string, tools: Named[]): void {
    if (tools.length === 0) return
    const key = keyOf(caller)
    const offer = { request, tools: new Set(tools.map(nameOf)), at: this.#now() }
    const own = [...this.#fresh(key).filter((other) => other.request !== request), offer].slice(-MAX_OFFERS)
    this.#offers.delete(key)
    this.#offers.set(key, own)
    const [oldest] = this.#offers.keys()
    if (this.#offers.size > MAX_CLIENTS && oldest !== undefined) this.#offers.delete(oldest)
  }

  /** The latest request that this client was offered the tool for. It is forgotten with this. */
  take(caller: Caller, chosen: Named): string | undefined {
    const key = keyOf(caller)
    const own = this.#fresh(key)
    const offer = own.findLast(({ tools }) => tools.has(nameOf(chosen)))
    if (offer)
      this.#offers.set(
        key,
        own.filter((other) => other !== offer)
      )
    return offer?.request
  }

  #fresh(key: string): Offer[] {
    return (this.#offers.get(key) ?? []).filter(({ at }) => this.#now() - at < FORGET_MS)
  }
}

function keyOf({ owner, door, client, laneId }: Caller): string {
  return JSON.stringify([owner, door, client, laneId])
}

function nameOf({ server, tool }: Named): string {
  return `${server}\n${tool}`
}
