import type { FastifyInstance } from 'fastify'
import { ACCESS_COOKIE } from '../lib/browser-proof.ts'
import { cookieOptions, type SecurityOptions } from './security.ts'

/** Turns the access token, typed into the page once, into a cookie. */
export function registerLogin(server: FastifyInstance, options: Pick<SecurityOptions, 'instance' | 'addressOf'>): void {
  const { addressOf } = options
  const instance: SecurityOptions['instance'] = options.instance
  server.post<{ Body: { token?: unknown } | null }>('/api/login', async (request, reply) => {
    const token = request.body?.token
    instance.checkLogin(token, addressOf(request.raw))
    return reply.setCookie(ACCESS_COOKIE, token, cookieOptions(request)).code(204).send()
  })
}
