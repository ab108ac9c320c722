/**
 * The instance's own door, before any session's: its access token as Bearer, in the socket's auth, or in the cookie of a login.
 * Wrong ones are counted by address. A right one always comes in: many people can have one address, and the noise of one of them
 * must not shut the others out. So what makes guessing hopeless is the token's length.
 */
import { ACCESS_COOKIE, isLoopbackHost, readCookie } from '../lib/browser-proof.ts'
import { AppError } from '../lib/errors.ts'
import type { Logger } from '../lib/logger.ts'
import { RateLimit } from '../lib/rate-limit.ts'
import { sameSecret } from './session-access.ts'

export interface Shown {
  headers: Record<string, string | string[] | undefined>
  /** Whose request it is, for counting. */
  address: string
  /** From the socket's auth. */
  token?: unknown
}

const WRONG_PER_MINUTE = 20

export class InstanceAccess {
  readonly #token: string | undefined
  readonly #logger: Logger
  readonly #wrong = new RateLimit(WRONG_PER_MINUTE, 60_000)
  readonly #told = new RateLimit(1, 60_000)

  constructor(token: string | undefined, logger: Logger) {
    this.#token = token
    this.#logger = logger
  }

  /** Throws unless the request may come in. */
  check({ headers, address, token }: Shown): void {
    // Without a token only this machine may come in, and only by a name that no page elsewhere can have.
    if (this.#token === undefined) {
      if (isLoopbackHost(String(headers.host ?? ''))) return
      throw new AppError('forbidden', 'unknown_host', 'Without AUTH_TOKEN this server answers to localhost only.')
    }
    const bearer = /^Bearer (.+)$/.exec(String(headers.authorization ?? ''))?.[1]
    const cookie = readCookie(String(headers.cookie ?? ''), ACCESS_COOKIE)
    const shown = [token, bearer, cookie].filter((one) => typeof one === 'string' && one !== '')
    if (shown.some((one) => this.#isRight(one))) return
    if (shown.length > 0) this.#count(address)
    throw new AppError('forbidden', 'unauthorized', 'This server asks for its access token.')
  }

  /** Throws unless it is the access token, typed in at a login. */
  checkLogin(token: unknown, address: string): asserts token is string {
    if (this.#isRight(token)) return
    this.#count(address)
    throw new AppError('forbidden', 'unauthorized', 'That is not the access token of this server.')
  }

  #isRight(shown: unknown): boolean {
    return typeof shown === 'string' && this.#token !== undefined && sameSecret(shown, this.#token)
  }

  #count(address: string): void {
    if (this.#wrong.take(address)) return
    if (this.#told.take(address)) this.#logger.warn({ address }, 'Many wrong access tokens come from one address.')
    throw new AppError('unavailable', 'too_fast', 'Too many wrong access tokens from your address; wait a minute.')
  }
}
