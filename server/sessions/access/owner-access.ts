/**
 * Identifies a browser. Cookies alone prove nothing, because any page on another port of this host can set and read them. So an
 * owner cookie counts only together with a proof: a secret that the page keeps in its own origin's storage and sends with every
 * request. The cookie contains a hash of the proof, so nothing is stored. Cookies from before there were proofs are bound to the
 * first proof that comes with them; that hash is stored.
 */
import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { BoundedMap } from '../../lib/bounded-map.ts'
import { AppError } from '../../lib/errors.ts'
import { OWNER_COOKIE, ownerCookieName, readCookies } from '../../lib/web/browser-proof.ts'
import type { KeyValueStore } from '../../storage/key-value-store.ts'
import { ownerName, type SessionAccess, sameSecret, secret } from './session-access.ts'

export interface EnteredOwner {
  cookie: string
  /** False if the browser's cookie was missing, belonged to someone else, or was not set by us. */
  isKnown: boolean
}

const PROOFS = 'owner-proofs'
const PROOF_FORM = /^[\w-]{43}$/
/** How long an owner with sessions counts as known without another look at the store. */
const KNOWN_MS = 60_000
const MAX_KNOWN = 10_000
const COOKIE_FORM = /^2\.([\w-]{43})\.([\w-]{43})$/

export class OwnerAccess {
  readonly #keyValues: KeyValueStore
  readonly #sessions: Pick<SessionAccess, 'hasSessions' | 'revokeTokens'>

  /** When each owner was last seen to have sessions. */
  readonly #known = new BoundedMap<string, number>(MAX_KNOWN)

  constructor(keyValues: KeyValueStore, sessions: Pick<SessionAccess, 'hasSessions' | 'revokeTokens'>) {
    this.#keyValues = keyValues
    this.#sessions = sessions
  }

  /** The proven owner cookie of a request. Throws if the request has a proof that fits no cookie. */
  async ownerOf(headers: IncomingHttpHeaders, proof: unknown): Promise<string | undefined> {
    const cookie = onlyCookie(headers, ownerCookieName(headers))
    if (typeof proof !== 'string' || proof === '') return undefined
    if (cookie !== undefined && (await this.#isProven(cookie, proof))) return cookie
    const message =
      'This browser did not send the cookie of this page: allow cookies for this address, then reload the page.'
    throw new AppError('forbidden', 'owner_unproven', message)
  }

  /** Returns the owner that the page proves to be, or creates a new one. */
  async enter(headers: IncomingHttpHeaders, proof: unknown): Promise<EnteredOwner> {
    if (typeof proof !== 'string' || !PROOF_FORM.test(proof)) {
      throw new AppError('invalid', 'invalid_request', 'The page must send its proof: 32 random bytes as base64url.')
    }
    const cookie = onlyCookie(headers, ownerCookieName(headers))
    if (cookie !== undefined && (await this.#isProven(cookie, proof))) return { cookie, isKnown: true }
    const old = onlyCookie(headers, OWNER_COOKIE)
    if (old !== undefined && (await this.#bindOld(old, proof))) return { cookie: old, isKnown: true }
    return { cookie: ownerCookie(secret(), proof), isKnown: false }
  }

  /** Whether an owner has stored sessions. Anyone can make up an owner without. */
  async isKnown(owner: string): Promise<boolean> {
    const name = ownerName(owner)
    const now = performance.now()
    if (now - (this.#known.get(name) ?? -KNOWN_MS) < KNOWN_MS) return true
    const isKnown = await this.#sessions.hasSessions(owner)
    if (isKnown) this.#known.set(name, now)
    return isKnown
  }

  async #isProven(cookie: string, proof: string): Promise<boolean> {
    if (!PROOF_FORM.test(proof)) return false
    const [, owner, committed] = COOKIE_FORM.exec(cookie) ?? []
    if (owner !== undefined && committed !== undefined) return sameSecret(committed, commitment(owner, proof))
    const stored = await this.#keyValues.get(PROOFS, ownerName(cookie))
    return typeof stored === 'string' && sameSecret(stored, commitment(cookie, proof))
  }

  /** Works once per owner, and only for an owner who has sessions. A made-up or already bound cookie leads to a new owner. */
  async #bindOld(cookie: string, proof: string): Promise<boolean> {
    if (COOKIE_FORM.test(cookie)) return false
    const isFirst =
      (await this.#sessions.hasSessions(cookie)) &&
      (await this.#keyValues.add(PROOFS, ownerName(cookie), commitment(cookie, proof)))
    if (!isFirst) return this.#isProven(cookie, proof)
    // An attacker who planted this cookie may have kept tokens of its sessions.
    await this.#sessions.revokeTokens(cookie)
    return true
  }
}

export function ownerCookie(owner: string, proof: string): string {
  return `2.${owner}.${commitment(owner, proof)}`
}

function commitment(owner: string, proof: string): string {
  return createHash('sha256').update(`${owner}.${proof}`).digest('base64url')
}

function onlyCookie(headers: IncomingHttpHeaders, name: string): string | undefined {
  const [cookie, second] = readCookies(headers.cookie, name)
  if (second === undefined) return cookie || undefined
  const message =
    'Another program on this host has set a second owner cookie. It was removed where possible: reload the page, or clear the cookies of this address.'
  throw new AppError('forbidden', 'two_owner_cookies', message)
}
