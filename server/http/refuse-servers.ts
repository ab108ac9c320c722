/** Refuses requests of MCP servers that run here, and of other users of this machine (`sender-check.ts`). */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Purpose, SenderCheck } from '../sessions/access/sender-check.ts'

export function refuseServers(server: FastifyInstance, senders: Pick<SenderCheck, 'check'>): void {
  const check = async (request: FastifyRequest) => {
    const purpose = purposeOf(request)
    if (purpose) await senders.check(request.raw, purpose)
  }
  server.addHook('onRequest', check)
  // Check again after the whole request has arrived: the sender may have closed the socket or passed it on.
  server.addHook('preHandler', check)
}

/** Uses the route, not the address, which can be written in many ways. Health, metrics and static files are open to everyone. */
function purposeOf({ method, routeOptions }: FastifyRequest): Purpose | undefined {
  const route = routeOptions.url ?? ''
  if (route === '/mcp') return 'action'
  if (!route.startsWith('/api/') || route === '/api/login') return undefined
  if (method === 'GET' || method === 'HEAD') return 'look'
  return /^\/api\/(servers|approvals|runs|providers)\b/.test(route) ? 'decision' : 'action'
}
