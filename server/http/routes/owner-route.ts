import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { OwnerReply } from '../../../contract/rest.ts'
import { ACCESS_COOKIE, accessCookieName, OWNER_PROOF_HEADER, ownerCookieName } from '../../lib/web/browser-proof.ts'
import { cookieOptions, OWNER_PATH, removeStrayCookies, type SecurityOptions } from '../security.ts'

/** Where a page becomes an owner, or is found to be one still. Its header is one that no other origin can send. */
export function registerOwner(server: FastifyInstance, options: Pick<SecurityOptions, 'instance' | 'owners'>): void {
  server.post(OWNER_PATH, async (request, reply): Promise<OwnerReply> => {
    const { headers } = request
    removeStrayCookies(request, reply)
    const { cookie, isKnown } = await options.owners.enter(headers, headers[OWNER_PROOF_HEADER])
    // Set anew at each visit, for another year: who comes now and then stays the same owner.
    reply.setCookie(ownerCookieName(headers), cookie, cookieOptions(request))
    renewAccess(request, reply, options.instance)
    return { isKnown }
  })
}

/** Earlier versions kept the access token itself in a cookie, which every port of this host gets to see. */
function renewAccess(request: FastifyRequest, reply: FastifyReply, instance: SecurityOptions['instance']): void {
  const name = accessCookieName(request.headers)
  const value = instance.cookieFor(request.headers[OWNER_PROOF_HEADER])
  if (value === undefined || !(request.cookies[name] || request.cookies[ACCESS_COOKIE])) return
  reply.setCookie(name, value, cookieOptions(request))
  if (request.cookies[ACCESS_COOKIE]) reply.clearCookie(ACCESS_COOKIE, cookieOptions(request))
}
