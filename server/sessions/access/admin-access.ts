/**
 * Decides who may change servers over HTTP. Adding a server runs a command on this machine, so the access token that a whole team
 * shares is not enough. Without any token, only this machine can connect, and everyone who can connect may change servers.
 */
import type { ServersAdmin } from '../../../contract/servers.ts'
import { AppError } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import { RateLimit, tooFast } from '../../lib/web/rate-limit.ts'
import { sameSecret } from './session-access.ts'

export interface AdminRequest {
  headers: Record<string, string | string[] | undefined>
  /** Wrong tokens are counted by address. */
  address: string
}

interface AdminSettings {
  ADMIN_TOKEN: string | undefined
  AUTH_TOKEN: string | undefined
  WRONG_TOKENS_PER_MINUTE?: number
}

const ADMIN_HEADER = 'x-admin-token'
const CLI_ONLY =
  'You can change servers of this instance only on the command line (mcp-orchestrator servers …): it has an AUTH_TOKEN and no ADMIN_TOKEN.'

export class AdminAccess {
  readonly #token: string | undefined
  readonly #isShared: boolean
  readonly #logger: Logger
  readonly #wrong: RateLimit
  readonly #told = new RateLimit(1, 60_000)

  constructor(tokens: AdminSettings, logger: Logger) {
    this.#wrong = new RateLimit(tokens.WRONG_TOKENS_PER_MINUTE ?? 20, 60_000)
    this.#token = tokens.ADMIN_TOKEN
    this.#isShared = tokens.AUTH_TOKEN !== undefined
    this.#logger = logger
  }

  /** Returns what the sender may do. Throws if the request contains a wrong admin token. */
  permissionsOf({ headers, address }: AdminRequest): ServersAdmin {
    if (this.#token === undefined) return this.#isShared ? 'cli_only' : 'allowed'
    const shown = headers[ADMIN_HEADER]
    if (shown === undefined) return 'token_needed'
    if (typeof shown === 'string' && sameSecret(shown, this.#token)) return 'allowed'
    this.#count(address)
    throw new AppError('forbidden', 'admin_required', 'Wrong admin token.')
  }

  /** Whether the request contains the admin token. Throws if it contains a wrong one. */
  isProven(request: AdminRequest): boolean {
    return (
      this.#token !== undefined &&
      request.headers[ADMIN_HEADER] !== undefined &&
      this.permissionsOf(request) === 'allowed'
    )
  }

  /** Throws unless the sender may change servers. */
  check(request: AdminRequest): void {
    const state = this.permissionsOf(request)
    if (state === 'cli_only') throw new AppError('forbidden', 'admin_cli_only', CLI_ONLY)
    if (state === 'token_needed') {
      const message = `Changing servers needs the admin token (ADMIN_TOKEN), in the header ${ADMIN_HEADER}.`
      throw new AppError('forbidden', 'admin_required', message)
    }
  }

  #count(address: string): void {
    const waitMs = this.#wrong.tryTake(address)
    if (waitMs === 0) return
    if (this.#told.tryTake(address) === 0)
      this.#logger.warn({ address }, 'Many wrong admin tokens come from one address.')
    throw tooFast('wrong admin tokens from your address', waitMs)
  }
}
