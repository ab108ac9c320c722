import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type ProviderKeysReply, providerKeySchema } from '../../../contract/rest.ts'
import { AppError } from '../../lib/errors.ts'
import type { AddressOf } from '../../lib/web/client-address.ts'
import { refuseOther, type ServersAdminCheck } from './servers/server-routes.ts'

export interface ProviderRoutesOptions {
  providers: {
    list(): Promise<ProviderKeysReply['providers']>
    set(id: string, key: string): Promise<void>
    remove(id: string): Promise<void>
  }
  admin: ServersAdminCheck
  addressOf: AddressOf
}

type Named = { Params: { id: string } }

/** Keys of model providers cost money and read every chat, so they are for administrators, like servers. They are never sent back. */
export function registerProviderRoutes(server: FastifyInstance, options: ProviderRoutesOptions): void {
  const { providers, admin, addressOf } = options
  const shown = (request: FastifyRequest) => ({ headers: request.headers, address: addressOf(request.raw) })
  const checkAdmin = async (request: FastifyRequest) => admin.check(shown(request), 'keys')
  server.get('/api/providers', async (request) => {
    return { admin: admin.permissionsOf(shown(request)), providers: await providers.list() }
  })
  server.put<Named>(
    '/api/providers/:id/key',
    { onRequest: checkAdmin, preHandler: refuseOther },
    async (request, reply) => {
      const read = providerKeySchema.safeParse(request.body)
      if (!read.success)
        throw new AppError('invalid', 'invalid_request', 'Send the key as {"apiKey": "…"}, without spaces.')
      await providers.set(request.params.id, read.data.apiKey)
      return reply.code(204).send()
    }
  )
  server.delete<Named>('/api/providers/:id/key', { onRequest: checkAdmin }, async (request, reply) => {
    await providers.remove(request.params.id)
    return reply.code(204).send()
  })
}
