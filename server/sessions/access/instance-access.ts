/**
 * The instance's own door, before any session's: its access token as Bearer, in the socket's auth, or a login's cookie. Every port
 * of this host gets to see that cookie, so it does not hold the token, and counts only with the proof that the page keeps. Wrong tokens are counted by address. A right one always comes in: many people can have one address, and the noise of one of them
 * must not shut the others out. So what makes guessing hopeless is the token's length.
 */
import { createHmac } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { AppError } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import {
  ACCESS_COOKIE,
  accessCookieName,
  isLoopbackHost,
  OWNER_PROOF_HEADER,
  readCookies
} from '../../lib/web/browser-proof.ts'
import { RateLimit, tooFast } from '../../lib/web/rate-limit.ts'
import { sameSecret } from './session-access.ts'

export interface Shown {
  headers: IncomingHttpHeaders
  /** Whose request it is, for counting. */
  address: string
  /** From the socket's auth. */
  token?: unknown
  /** From the socket's auth; requests have it in a header. */
  proof?: unknown
}

const MIN_PROOF = 43

export class InstanceAccess {
  readonly #token: string | undefined
  readonly #logger: Logger
  readonly #wrong: RateLimit
  readonly #told = new RateLimit(1, 60_000)

  constructor(token: string | undefined, logger: Logger, wrongPerMinute = 20) {
    this.#token = token
    this.#wrong = new RateLimit(wrongPerMinute, 60_000)
    this.#logger = logger
  }

  get needsToken(): boolean {
    return this.#token !== undefined
  }

  /** Throws unless the request may come in. */
  check({ headers, address, token, proof = headers[OWNER_PROOF_HEADER] }: Shown): void {
    // Without a token only this machine may come in, and only by a name that no page elsewhere can have.
    if (this.#token === undefined) {
      if (isLoopbackHost(String(headers.host ?? ''))) return
      throw new AppError('forbidden', 'unknown_host', 'Without AUTH_TOKEN this server answers to localhost only.')
    }
    const shown = [token, bearerOf(headers), ...readCookies(headers.cookie, ACCESS_COOKIE)].filter(
      (one) => typeof one === 'string' && one !== ''
    )
    if (shown.some((one) => this.#isRight(one))) return
    const expected = this.cookieFor(proof)
    if (expected !== undefined && loginCookies(headers).some((cookie) => sameSecret(cookie, expected))) return
    if (shown.length > 0) this.#count(address)
    throw new AppError('forbidden', 'unauthorized', 'This server asks for its access token.')
  }

  /** Throws unless it is the access token, typed in at a login. */
  checkLogin(token: unknown, address: string): asserts token is string {
    if (this.#isRight(token)) return
    this.#count(address)
    throw new AppError('forbidden', 'unauthorized', 'That is not the access token of this server.')
  }

  /** What the cookie of a login holds: proves the token to us, tells it to nobody, and is nothing without the page's proof. */
  cookieFor(proof: unknown): string | undefined {
    if (this.#token === undefined || typeof proof !== 'string' || proof.length < MIN_PROOF) return undefined
    const bound = this.#sign(proof)
    return `${bound}.${this.#sign(bound)}`
  }

  /**
   * Whether a connection is that of someone who has logged in or has the token, as far as headers show it: enough to count it apart
   * from those of strangers at the same address, not enough to come in.
   */
  isKnown(headers: IncomingHttpHeaders): boolean {
    if (this.#token === undefined) return isLoopbackHost(headers.host)
    const signed = loginCookies(headers).some((cookie) => {
      const [bound = '', signature = ''] = cookie.split('.')
      return sameSecret(signature, this.#sign(bound))
    })
    return signed || this.#isRight(bearerOf(headers))
  }

  #sign(text: string): string {
    return createHmac('sha256', this.#token ?? '')
      .update(text)
      .digest('base64url')
  }

  #isRight(shown: unknown): boolean {
    return typeof shown === 'string' && this.#token !== undefined && sameSecret(shown, this.#token)
  }

  #count(address: string): void {
    const waitMs = this.#wrong.tryTake(address)
    if (waitMs === 0) return
    if (this.#told.tryTake(address) === 0)
      this.#logger.warn({ address }, 'Many wrong access tokens come from one address.')
    throw tooFast('wrong access tokens from your address', waitMs)
  }
}

const bearerOf = ({ authorization }: IncomingHttpHeaders) => /^Bearer (.+)$/.exec(authorization ?? '')?.[1]
const loginCookies = (headers: IncomingHttpHeaders) => readCookies(headers.cookie, accessCookieName(headers))
