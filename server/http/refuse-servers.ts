/** Refuses requests of MCP servers that run here, and of other users of this machine (`sender-check.ts`). */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Purpose, SenderCheck } from '../sessions/access/sender-check.ts'

export function refuseServers(server: FastifyInstance, senders: Pick<SenderCheck, 'check'>): void {
  const check = async (request: FastifyRequest) => {
    const purpose = purposeOf(request)
    if (purpose) senders.check(request.raw, purpose)
  }
  server.addHook('onRequest', check)
  // Again when the whole request is there: by now the sender may have closed or passed on its end.
  server.addHook('preHandler', check)
}

/** By the route and not by the address, which can be written in many ways. Health, metrics and the page's own files are for everyone. */
function purposeOf({ method, routeOptions }: FastifyRequest): Purpose | undefined {
  const route = routeOptions.url ?? ''
  if (route === '/mcp') return 'action'
  if (!route.startsWith('/api/') || route === '/api/login') return undefined
  if (method === 'GET' || method === 'HEAD') return 'look'
  return /^\/api\/(servers|approvals)\b/.test(route) ? 'decision' : 'action'
}
