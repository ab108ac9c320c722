import { createHash } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { addServersSchema } from '../../../../contract/servers/servers.ts'
import { AppError } from '../../../lib/errors.ts'
import type { AddressOf } from '../../../lib/web/client-address.ts'
import type { AdminAccess } from '../../../sessions/access/admin-access.ts'
import type { ServerDirectory } from '../../../tools/server-directory.ts'
import { bodyOf, registerEditRoutes } from './edit-routes.ts'
import { registerImportRoutes } from './import-routes.ts'
import { registerTrialRoutes } from './trial-routes.ts'

/** The owner whose credentials a test uses and whose log is shown, from the cookies of the request. */
export type OwnerOf = (cookies: string | undefined) => string

export type ServersAdminCheck = Pick<AdminAccess, 'permissionsOf' | 'check' | 'isProven'>

export interface ServerRoutesOptions {
  servers: ServerDirectory
  ownerOf: OwnerOf
  admin: ServersAdminCheck
  addressOf: AddressOf
}

type Named = { Params: { name: string } }

/** Adding a server means running a command on this machine, so it needs an administrator, and a JSON body. */
export function registerServerRoutes(server: FastifyInstance, options: ServerRoutesOptions): void {
  const { servers, ownerOf, admin, addressOf } = options
  const shown = (request: FastifyRequest) => ({ headers: request.headers, address: addressOf(request.raw) })
  const checkAdmin = async (request: FastifyRequest) => admin.check(shown(request))
  const json = { preHandler: refuseOther }
  const change = { onRequest: checkAdmin, preHandler: refuseOther }
  registerEditRoutes(server, servers, { checkAdmin, refuseOther })
  registerImportRoutes(server, servers, { checkAdmin, refuseOther })
  registerTrialRoutes(server, { servers, ownerOf, whileOpen, checkAdmin, refuseOther })
  server.get('/api/servers', async (request, reply) => {
    const text = JSON.stringify(await servers.list(admin.permissionsOf(shown(request))))
    // The page asks every few seconds. The browser then sends the tag, and an unchanged list is not sent again.
    const tag = `"${createHash('sha256').update(text).digest('base64url')}"`
    reply.headers({ etag: tag, 'cache-control': 'private, no-cache' }).type('application/json')
    return request.headers['if-none-match'] === tag ? reply.code(304).send() : text
  })
  server.get<Named>('/api/servers/:name', (request) =>
    servers.detail(request.params.name, ownerOf(request.headers.cookie), admin.permissionsOf(shown(request)))
  )

  server.post('/api/servers', change, async (request, reply) => {
    const { text, mcpServers, moveSecrets, confirm } = bodyOf(addServersSchema, request.body)
    const answer = await servers.add({ text: text ?? JSON.stringify({ mcpServers }, null, 2), moveSecrets, confirm })
    return reply.code(confirm === undefined ? 200 : 201).send(answer)
  })

  server.post<Named>('/api/servers/:name/test', json, (request, reply) => {
    const permissions = admin.permissionsOf(shown(request))
    return servers.test(request.params.name, ownerOf(request.headers.cookie), whileOpen(reply), permissions)
  })

  server.post<Named>('/api/servers/:name/restart', change, async (request, reply) => {
    await servers.restart(request.params.name)
    return reply.code(204).send()
  })

  server.post<Named & { Body: { hash?: unknown } | null }>(
    '/api/servers/:name/accept',
    change,
    async (request, reply) => {
      await servers.accept(request.params.name, request.body?.hash)
      return reply.code(204).send()
    }
  )

  for (const [verb, on] of [['enable', true] as const, ['disable', false] as const]) {
    server.post<Named>(`/api/servers/:name/${verb}`, change, async (request, reply) => {
      await servers.switch(request.params.name, on)
      return reply.code(204).send()
    })
  }

  server.delete<Named>('/api/servers/:name', { onRequest: checkAdmin }, async (request, reply) => {
    await servers.remove(request.params.name)
    return reply.code(204).send()
  })
}

/** Aborted when the client goes away. */
function whileOpen(reply: FastifyReply): AbortSignal {
  const gone = new AbortController()
  // Listen to the reply, not to its connection, which serves many requests.
  reply.raw.once('close', () => gone.abort())
  return gone.signal
}

/** A form on another site can send any type but this one without a preflight request. */
export async function refuseOther({ headers }: FastifyRequest): Promise<void> {
  if (/^application\/json\s*(;|$)/i.test(headers['content-type'] ?? '')) return
  throw new AppError('invalid', 'json_only', 'Send the request as application/json.')
}
