import type { FastifyInstance } from 'fastify'
import { ACCESS_COOKIE } from '../lib/browser-proof.ts'
import { AppError } from '../lib/errors.ts'
import { cookieOptions } from './security.ts'

/** Turns the access token, typed into the page once, into a cookie. Few tries a minute: it is worth guessing. */
export function registerLogin(server: FastifyInstance, isRight: (token: string) => boolean): void {
  const config = { rateLimit: { max: 10, timeWindow: 60_000 } }
  server.post<{ Body: { token?: unknown } | null }>('/api/login', { config }, async (request, reply) => {
    const token = request.body?.token
    if (typeof token !== 'string' || !isRight(token)) {
      throw new AppError('forbidden', 'unauthorized', 'That is not the access token of this server.')
    }
    return reply.setCookie(ACCESS_COOKIE, token, cookieOptions(request)).code(204).send()
  })
}
