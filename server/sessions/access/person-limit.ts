import { RateLimit, tooFast } from '../../lib/web/rate-limit.ts'
import { ownerName } from './session-access.ts'

export interface Person {
  /** The proven owner cookie; undefined for a client without one. */
  owner: string | undefined
  address: string
}

const MINUTE_MS = 60_000
/** Many people can share one address. */
export const ADDRESS_FACTOR = 10

/**
 * Limits what one person does per minute: a browser, or the clients without one at an address. Anyone can make up browsers, so
 * those without stored sessions share a limit of their address too. Nobody can use up the limit of a browser with sessions.
 */
export class PersonLimit {
  readonly #people: RateLimit
  readonly #newcomers: RateLimit
  readonly #isKnown: (owner: string) => Promise<boolean>

  constructor(perMinute: number, isKnown: (owner: string) => Promise<boolean>) {
    this.#people = new RateLimit(perMinute, MINUTE_MS)
    this.#newcomers = new RateLimit(perMinute * ADDRESS_FACTOR, MINUTE_MS)
    this.#isKnown = isKnown
  }

  /** Throws `too_fast` with the time to come back. `what` as in "Too many …". */
  async enter({ owner, address }: Person, what: string): Promise<void> {
    const person = personOf({ owner, address })
    const isCounted = owner !== undefined && !(await this.#isKnown(owner))
    const waitMs = (isCounted && this.#newcomers.waitMs(address)) || this.#people.tryTake(person)
    if (waitMs > 0) throw tooFast(what, waitMs)
    if (isCounted) this.#newcomers.tryTake(address)
  }
}

export function personOf({ owner, address }: Person): string {
  return owner === undefined ? `address:${address}` : `owner:${ownerName(owner)}`
}
