/**
 * The tools that each client was offered for its last requests. If it then calls one by name, the router learns from that. Invariant: a
 * request is learned at most once, for the client that made it, and only for a tool that it may have meant.
 */
import type { Caller } from '../../calls/caller.ts'

interface Offer {
  request: string
  /** `server`, a line break, and `tool`: those that the client was shown, and all that it may have meant. */
  shown: Set<string>
  plausible: Set<string>
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

  offered(caller: Caller, request: string, shown: Named[], plausible: Named[] = []): void {
    const key = keyOf(caller)
    const names = { shown: new Set(shown.map(nameOf)), plausible: new Set(plausible.map(nameOf)) }
    const offer = { request, ...names, at: this.#now() }
    const own = [...this.#fresh(key).filter((other) => other.request !== request), offer].slice(-MAX_OFFERS)
    this.#offers.delete(key)
    this.#offers.set(key, own)
    const [oldest] = this.#offers.keys()
    if (this.#offers.size > MAX_CLIENTS && oldest !== undefined) this.#offers.delete(oldest)
  }

  /**
   * The latest request that this client was shown the tool for. If there is none, its last request, if the tool was plausible there: an
   * earlier one may have been given up, and almost any tool is plausible for some request. It is forgotten with this.
   */
  take(caller: Caller, chosen: Named): string | undefined {
    const key = keyOf(caller)
    const own = this.#fresh(key)
    const name = nameOf(chosen)
    const offer =
      own.findLast(({ shown }) => shown.has(name)) ?? own.slice(-1).find(({ plausible }) => plausible.has(name))
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
