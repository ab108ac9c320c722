/** Headers, owner cookie and access token: what stands before every HTTP route. */
import cookie from '@fastify/cookie'
import helmet from '@fastify/helmet'
import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ACCESS_COOKIE, isOwnOrigin, OWNER_COOKIE } from '../lib/browser-proof.ts'
import type { AddressOf } from '../lib/client-address.ts'
import { AppError } from '../lib/errors.ts'
import type { InstanceAccess } from '../sessions/instance-access.ts'

export interface SecurityOptions {
  instance: Pick<InstanceAccess, 'check' | 'checkLogin'>
  addressOf: AddressOf
  newSecret: () => string
}

const OPEN_PATHS = /^\/(healthz|readyz|api\/login|assets\/|favicon|$|\?|index\.html)/
const YEAR_SECONDS = 365 * 86_400
const REQUESTS_PER_MINUTE = 600

const CSP = {
  defaultSrc: ["'self'"],
  scriptSrc: ["'self'"],
  styleSrc: ["'self'"],
  imgSrc: ["'self'", 'data:', 'blob:'],
  connectSrc: ["'self'"],
  objectSrc: ["'none'"],
  baseUri: ["'none'"],
  formAction: ["'self'"],
  frameAncestors: ["'none'"]
}

export async function registerSecurity(server: FastifyInstance, options: SecurityOptions): Promise<void> {
  await server.register(cookie)
  await server.register(helmet, {
    contentSecurityPolicy: { useDefaults: false, directives: CSP },
    // Plain HTTP on loopback is the default; a proxy that adds TLS adds this too.
    hsts: false
  })
  await server.register(rateLimit, {
    max: REQUESTS_PER_MINUTE,
    timeWindow: 60_000,
    keyGenerator: ({ raw }) => options.addressOf(raw)
  })
  server.addHook('onRequest', async (request, reply) => {
    if (!isOwnOrigin(request))
      throw new AppError('forbidden', 'foreign_origin', 'This request comes from another site.')
    if (!OPEN_PATHS.test(request.url)) checkAccess(request, reply, options)
    const owner = request.cookies[OWNER_COOKIE]
    // Given again with each visit of the page: who comes by now and then stays who they are for good.
    if (isNoVisit(request) || (owner && !/^\/($|\?)/.test(request.url))) return
    reply.setCookie(OWNER_COOKIE, owner || options.newSecret(), cookieOptions(request))
  })
}

function checkAccess(request: FastifyRequest, reply: FastifyReply, { instance, addressOf }: SecurityOptions): void {
  try {
    instance.check({ headers: request.headers, address: addressOf(request.raw) })
  } catch (error) {
    // Of a token that was changed since: a page that went on with it would be counted as one that guesses.
    if (request.cookies[ACCESS_COOKIE] !== undefined) reply.clearCookie(ACCESS_COOKIE, cookieOptions(request))
    throw error
  }
}

/** A link on another site opens the page without its strict cookie: a new one would take the place of the owner's. */
function isNoVisit({ url, headers }: FastifyRequest): boolean {
  const site = headers['sec-fetch-site']
  return /^\/(healthz|readyz|metrics|mcp)/.test(url) || site === 'cross-site' || site === 'same-site'
}

/** A proxy that ends TLS says so; without one, the default is plain HTTP on loopback. */
export function cookieOptions({ headers }: Pick<FastifyRequest, 'headers'>) {
  const secure = headers['x-forwarded-proto'] === 'https'
  return { httpOnly: true, sameSite: 'strict', path: '/', maxAge: YEAR_SECONDS, secure } as const
}
