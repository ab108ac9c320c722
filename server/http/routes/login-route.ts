import type { FastifyInstance } from 'fastify'
import { AppError } from '../../lib/errors.ts'
import { accessCookieName, OWNER_PROOF_HEADER } from '../../lib/web/browser-proof.ts'
import { cookieOptions, LOGIN_PATH, type SecurityOptions } from '../security.ts'

/** Anyone can send this, so little of it is kept in memory before the token is checked. */
const MAX_LOGIN_BYTES = 8 * 1024

/** Exchanges the access token for a cookie that is valid only together with the page's proof. */
export function registerLogin(server: FastifyInstance, options: Pick<SecurityOptions, 'instance' | 'addressOf'>): void {
  const { addressOf } = options
  const instance: SecurityOptions['instance'] = options.instance
  server.post<{ Body: { token?: unknown } | null }>(
    LOGIN_PATH,
    { bodyLimit: MAX_LOGIN_BYTES },
    async (request, reply) => {
      const { headers, body } = request
      instance.checkLogin(body?.token, addressOf(request.raw))
      const cookie = instance.cookieFor(headers[OWNER_PROOF_HEADER])
      if (cookie === undefined) {
        const message = 'Only the page can log in, with its proof; other clients send the token as Bearer.'
        throw new AppError('invalid', 'invalid_request', message)
      }
      return reply.setCookie(accessCookieName(headers), cookie, cookieOptions(request)).code(204).send()
    }
  )
}
