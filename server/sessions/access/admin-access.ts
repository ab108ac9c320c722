/**
 * Decides who may change servers over HTTP. Adding a server runs a command on this machine, so the access token that a whole team
 * shares is not enough. Without any token, only this machine can connect, and everyone who can connect may change servers.
 */
import type { ServersAdmin } from '../../../contract/servers/servers.ts'
import { AppError } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import { sameSecret } from './session-access.ts'
import { WrongTokens } from './wrong-tokens.ts'

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
const CLI_ONLY = {
  servers:
    'You can change servers of this instance only on the command line (mcp-orchestrator servers …): it has an AUTH_TOKEN and no ADMIN_TOKEN.',
  keys: 'You can change keys of this instance only in its environment: it has an AUTH_TOKEN and no ADMIN_TOKEN.'
}

export class AdminAccess {
  readonly #token: string | undefined
  readonly #isShared: boolean
  readonly #wrong: WrongTokens

  constructor(tokens: AdminSettings, logger: Logger) {
    this.#wrong = new WrongTokens('admin', logger, tokens.WRONG_TOKENS_PER_MINUTE)
    this.#token = tokens.ADMIN_TOKEN
    this.#isShared = tokens.AUTH_TOKEN !== undefined
  }

  /** Returns what the sender may do. Throws if the request contains a wrong admin token. */
  permissionsOf({ headers, address }: AdminRequest): ServersAdmin {
    if (this.#token === undefined) return this.#isShared ? 'cli_only' : 'allowed'
    const shown = headers[ADMIN_HEADER]
    if (shown === undefined) return 'token_needed'
    if (typeof shown === 'string' && sameSecret(shown, this.#token)) return 'allowed'
    this.#wrong.count(address)
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

  /** Throws unless the sender may change servers or keys of providers. */
  check(request: AdminRequest, what: 'servers' | 'keys' = 'servers'): void {
    const state = this.permissionsOf(request)
    if (state === 'cli_only') throw new AppError('forbidden', 'admin_cli_only', CLI_ONLY[what])
    if (state === 'token_needed') {
      const message = `Changing ${what} needs the admin token (ADMIN_TOKEN), in the header ${ADMIN_HEADER}.`
      throw new AppError('forbidden', 'admin_required', message)
    }
  }
}
