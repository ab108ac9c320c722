import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { OwnerReply } from '../../../contract/rest.ts'
import { ACCESS_COOKIE, accessCookieName, OWNER_PROOF_HEADER, ownerCookieName } from '../../lib/web/browser-proof.ts'
import { cookieOptions, OWNER_PATH, removeStrayCookies, type SecurityOptions } from '../security.ts'

/** Makes a page an owner, or confirms that it is one. Other origins can't send the required header. */
export function registerOwner(server: FastifyInstance, options: Pick<SecurityOptions, 'instance' | 'owners'>): void {
  server.post(OWNER_PATH, async (request, reply): Promise<OwnerReply> => {
    const { headers } = request
    removeStrayCookies(request, reply)
    const { cookie, isKnown } = await options.owners.enter(headers, headers[OWNER_PROOF_HEADER])
    // Renewed at each visit for another year, so that an occasional visitor stays the same owner.
    reply.setCookie(ownerCookieName(headers), cookie, cookieOptions(request))
    renewAccess(request, reply, options.instance)
    return { isKnown }
  })
}

/** Earlier versions stored the access token itself in a cookie, which is sent to every port of this host. */
function renewAccess(request: FastifyRequest, reply: FastifyReply, instance: SecurityOptions['instance']): void {
  const name = accessCookieName(request.headers)
  const value = instance.cookieFor(request.headers[OWNER_PROOF_HEADER])
  if (value === undefined || !(request.cookies[name] || request.cookies[ACCESS_COOKIE])) return
  reply.setCookie(name, value, cookieOptions(request))
  if (request.cookies[ACCESS_COOKIE]) reply.clearCookie(ACCESS_COOKIE, cookieOptions(request))
}
