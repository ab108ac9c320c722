import type { FastifyInstance, FastifyRequest } from 'fastify'
import { importServersSchema } from '../../../../contract/servers/import.ts'
import { AppError } from '../../../lib/errors.ts'
import type { ServerDirectory } from '../../../tools/server-directory.ts'
import { isFromThisMachine } from '../../this-machine.ts'
import { bodyOf } from './edit-routes.ts'

type Check = (request: FastifyRequest) => Promise<void>

/** Reads files below the home of the user who runs this server, so it is for administrators who sit at this machine. */
export function registerImportRoutes(
  server: FastifyInstance,
  servers: Pick<ServerDirectory, 'findImports' | 'import'>,
  { checkAdmin, refuseOther }: { checkAdmin: Check; refuseOther: Check }
): void {
  const onRequest = async (request: FastifyRequest) => {
    await checkAdmin(request)
    if (isFromThisMachine(request)) return
    const message =
      'Servers of other clients can be imported only in a browser on the same machine, or on its command line: mcp-orchestrator servers import'
    throw new AppError('forbidden', 'import_local_only', message)
  }
  server.get<{ Querystring: { moveSecrets?: string } }>('/api/servers-import', { onRequest }, ({ query }) =>
    servers.findImports(query.moveSecrets === 'true')
  )
  server.post('/api/servers-import', { onRequest, preHandler: refuseOther }, async ({ body }, reply) => {
    return reply.code(201).send(await servers.import(bodyOf(importServersSchema, body)))
  })
}
