import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { getPromptSchema, readResourceSchema } from '../../../../contract/servers/offers.ts'
import { toolTrialSchema } from '../../../../contract/servers/servers.ts'
import type { ServerDirectory } from '../../../tools/server-directory.ts'
import { bodyOf } from './edit-routes.ts'

type Named = { Params: { name: string } }
type Check = (request: FastifyRequest) => Promise<void>

interface TrialRoutesOptions {
  servers: Pick<ServerDirectory, 'log' | 'tool' | 'try' | 'offers' | 'resource' | 'prompt'>
  ownerOf(cookies: string | undefined): string
  whileOpen(reply: FastifyReply): AbortSignal
  checkAdmin: Check
  refuseOther: Check
}

/** Routes with which an administrator inspects and tries a server. Most of them start it. */
export function registerTrialRoutes(server: FastifyInstance, options: TrialRoutesOptions): void {
  const { servers, ownerOf, whileOpen, checkAdmin, refuseOther } = options
  const change = { onRequest: checkAdmin, preHandler: refuseOther }
  const look = { onRequest: checkAdmin }
  // The page follows it by asking again and again.
  server.get<Named>('/api/servers/:name/log', look, async ({ params, headers }) => {
    return { log: await servers.log(params.name, ownerOf(headers.cookie)) }
  })
  server.get<{ Params: { name: string; tool: string } }>(
    '/api/servers/:name/tools/:tool',
    look,
    ({ params, headers }, reply) => servers.tool(params.name, ownerOf(headers.cookie), params.tool, whileOpen(reply))
  )
  server.post<Named>('/api/servers/:name/call', change, ({ params, headers, body }, reply) => {
    const trial = bodyOf(toolTrialSchema, body)
    return servers.try(params.name, ownerOf(headers.cookie), trial, whileOpen(reply))
  })
  server.get<Named>('/api/servers/:name/offers', look, ({ params, headers }, reply) =>
    servers.offers(params.name, ownerOf(headers.cookie), whileOpen(reply))
  )
  server.post<Named>('/api/servers/:name/resource', change, ({ params, headers, body }, reply) => {
    const { uri } = bodyOf(readResourceSchema, body)
    return servers.resource(params.name, ownerOf(headers.cookie), uri, whileOpen(reply))
  })
  server.post<Named>('/api/servers/:name/prompt', change, ({ params, headers, body }, reply) => {
    const prompt = bodyOf(getPromptSchema, body)
    return servers.prompt(params.name, ownerOf(headers.cookie), prompt, whileOpen(reply))
  })
}
