/** Checks headers, owner cookie and access token before every HTTP route. */
import cookie from '@fastify/cookie'
import helmet from '@fastify/helmet'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { AppError, isAppError } from '../lib/errors.ts'
import {
  ACCESS_COOKIE,
  accessCookieName,
  isAllowedOrigin,
  isForAnotherSite,
  isSecure,
  mayUse,
  OWNER_COOKIE,
  OWNER_PROOF_HEADER,
  ownerCookieName
} from '../lib/web/browser-proof.ts'
import type { AddressOf } from '../lib/web/client-address.ts'
import { RateLimit } from '../lib/web/rate-limit.ts'
import type { InstanceAccess } from '../sessions/access/instance-access.ts'
import type { OwnerAccess } from '../sessions/access/owner-access.ts'
import { PersonLimit, personOf } from '../sessions/access/person-limit.ts'
import { type BodyLimits, BodyRoom, bodyBytes, bodyLimits } from './body-room.ts'
import { expiredCookies } from './stray-cookies.ts'

export interface SecurityOptions {
  instance: Pick<InstanceAccess, 'check' | 'checkLogin' | 'cookieFor' | 'needsToken'>
  addressOf: AddressOf
  owners: Pick<OwnerAccess, 'ownerOf' | 'enter' | 'isKnown'>
  /** Limit per browser, or per address for clients without one. Clients that have not logged in are counted separately, by address. */
  requestsPerMinute: number
  /** Limits of what is received at the same time. */
  bodies?: BodyLimits
  /** Sites besides our own page that may use the API. */
  allowedOrigins?: readonly string[]
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Requests to this route are not counted. */
    isUncounted?: true
  }
}

const OPEN_PATHS = /^\/(healthz|readyz|assets\/|favicon|$|\?|index\.html)/
const YEAR_SECONDS = 365 * 86_400
const MINUTE_MS = 60_000

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
    // The default is plain HTTP on loopback; a TLS proxy adds this header.
    hsts: false
  })
  const requests = new RateLimit(options.requestsPerMinute, MINUTE_MS)
  const people = new PersonLimit(options.requestsPerMinute, (owner) => options.owners.isKnown(owner))
  const bodies = new BodyRoom(options.bodies ?? bodyLimits(0))
  server.addHook('onRequest', async (request, reply) => {
    const isForeign = isAllowedOrigin(request, options.allowedOrigins)
    if (isForeign) allowOrigin(request, reply)
    if (isForeign && request.method === 'OPTIONS') return reply.code(204).send()
    // Another site may lead to the page itself.
    const isLink = isForAnotherSite(request) && isOpen(request)
    if (!isLink && !mayUse(request, options.allowedOrigins))
      throw new AppError('forbidden', 'foreign_origin', 'This request comes from another site.')
    // Health checks and static files cost little. If they counted, a stranger could use up the limits of others.
    if (isOpen(request)) return setOwner(request, undefined)
    const address = options.addressOf(request.raw)
    try {
      options.instance.check({ headers: request.headers, address })
    } catch (error) {
      clearAccess(request, reply)
      requests.enter(`stranger:${address}`, 'requests')
      throw error
    }
    // Apart from everything else: a flood must not blind the monitoring.
    if (request.routeOptions.url === METRICS_PATH) return requests.enter(`metrics:${address}`, 'requests')
    if (request.routeOptions.url === OWNER_PATH) return requests.enter(`visit:${address}`, 'requests')
    // After this hook, an owner cookie is proven or missing.
    const owner = await provenOwner(request, reply, options)
    setOwner(request, owner)
    if (!request.routeOptions.config.isUncounted) await people.enter({ owner, address }, 'requests')
    const bytes = bodyBytes(request)
    if (bytes === 0) return
    // Anyone can make up owners, so those without sessions share the room of their address.
    const isKnown = owner !== undefined && (await options.owners.isKnown(owner))
    reply.raw.once('close', bodies.take(personOf({ owner: isKnown ? owner : undefined, address }), bytes))
  })
}

/** Where anyone may go. Other methods would have a body, of which up to a megabyte is kept in memory. */
function isOpen({ method, url, routeOptions }: FastifyRequest): boolean {
  if (method === 'POST' && routeOptions.url === LOGIN_PATH) return true
  return (method === 'GET' || method === 'HEAD') && OPEN_PATHS.test(url)
}

/** Without credentials: a page of another site has no owner, only the tokens that it was given. */
function allowOrigin({ headers }: FastifyRequest, reply: FastifyReply): void {
  reply.header('access-control-allow-origin', headers.origin ?? '')
  reply.header('vary', 'origin')
  reply.header('access-control-allow-methods', 'GET, POST, PUT, PATCH, DELETE')
  reply.header('access-control-allow-headers', headers['access-control-request-headers'] ?? '')
  reply.header('access-control-max-age', '600')
}

export const OWNER_PATH = '/api/owner'
export const LOGIN_PATH = '/api/login'
export const METRICS_PATH = '/metrics'

async function provenOwner(request: FastifyRequest, reply: FastifyReply, { owners }: SecurityOptions) {
  try {
    return await owners.ownerOf(request.headers, request.headers[OWNER_PROOF_HEADER])
  } catch (error) {
    if (isAppError(error, 'two_owner_cookies')) removeStrayCookies(request, reply)
    throw error
  }
}

function setOwner({ headers }: FastifyRequest, owner: string | undefined): void {
  const names = [OWNER_COOKIE, ownerCookieName(headers)]
  const pairs = headers.cookie?.split(';') ?? []
  const others = pairs.filter((pair) => !names.includes(pair.split('=')[0]?.trim() ?? ''))
  if (owner !== undefined) others.push(`${OWNER_COOKIE}=${encodeURIComponent(owner)}`)
  headers.cookie = others.join(';')
}

/** Removes cookies that another program on this host has set for some of our paths, or for a whole domain. */
export function removeStrayCookies({ headers, url }: FastifyRequest, reply: FastifyReply): void {
  for (const name of [ownerCookieName(headers), OWNER_COOKIE]) {
    for (const line of expiredCookies(name, url, headers.host)) reply.header('set-cookie', line)
  }
}

/** Removes the cookie of an old token. A page that kept sending it would be counted as guessing. */
function clearAccess(request: FastifyRequest, reply: FastifyReply): void {
  for (const name of [ACCESS_COOKIE, accessCookieName(request.headers)])
    if (request.cookies[name] !== undefined) reply.clearCookie(name, cookieOptions(request))
}

/** A TLS proxy sets this header; without a proxy, the default is plain HTTP on loopback. */
export function cookieOptions({ headers }: Pick<FastifyRequest, 'headers'>) {
  return { httpOnly: true, sameSite: 'strict', path: '/', maxAge: YEAR_SECONDS, secure: isSecure(headers) } as const
}
