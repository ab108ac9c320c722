/**
 * Checks access to the instance, before access to any session: the access token as Bearer or in the socket's auth, or a login's
 * cookie. Every port of this host can see that cookie, so it does not contain the token and counts only with the proof that the
 * page keeps. Wrong tokens are counted by address, but a correct token is always accepted: many people can share an address, and
 * the noise of one must not lock the others out. Guessing is hopeless because of the token's length.
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
import { sameSecret } from './session-access.ts'
import { WrongTokens } from './wrong-tokens.ts'

export interface Credentials {
  headers: IncomingHttpHeaders
  /** The sender's address, for counting. */
  address: string
  /** From the socket's auth. */
  token?: unknown
  /** From the socket's auth; requests have it in a header. */
  proof?: unknown
}

const MIN_PROOF = 43

export class InstanceAccess {
  readonly #token: string | undefined
  readonly #wrong: WrongTokens

  constructor(token: string | undefined, logger: Logger, wrongPerMinute?: number) {
    this.#token = token
    this.#wrong = new WrongTokens('access', logger, wrongPerMinute)
  }

  get needsToken(): boolean {
    return this.#token !== undefined
  }

  /** Throws unless the request is allowed. */
  check({ headers, address, token, proof = headers[OWNER_PROOF_HEADER] }: Credentials): void {
    // Without a token, only this machine is allowed, and only under a name that no page elsewhere can have.
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
    if (shown.length > 0) this.#wrong.count(address)
    throw new AppError('forbidden', 'unauthorized', 'This server needs an access token.')
  }

  /** Throws unless this is the access token that was typed in at a login. */
  checkLogin(token: unknown, address: string): asserts token is string {
    if (this.#isRight(token)) return
    this.#wrong.count(address)
    throw new AppError('forbidden', 'unauthorized', 'Wrong access token.')
  }

  /** The value of a login's cookie. It proves the token to us without revealing it, and is worthless without the page's proof. */
  cookieFor(proof: unknown): string | undefined {
    if (this.#token === undefined || typeof proof !== 'string' || proof.length < MIN_PROOF) return undefined
    const bound = this.#sign(proof)
    return `${bound}.${this.#sign(bound)}`
  }

  /**
   * Whether the headers show someone who has logged in or has the token. That is enough to count the connection apart from
   * strangers at the same address, but not enough to grant access.
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
}

export const bearerOf = ({ authorization }: IncomingHttpHeaders) => /^Bearer (.+)$/.exec(authorization ?? '')?.[1]
const loginCookies = (headers: IncomingHttpHeaders) => readCookies(headers.cookie, accessCookieName(headers))
