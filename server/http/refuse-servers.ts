/**
 * What people decide here is not for servers to decide: without AUTH_TOKEN, they could reach the API as any program on this machine. So
 * the process behind a connection must be known for what it is, unless the request shows ADMIN_TOKEN.
 */
import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Sender } from '../connections/local/peer-process.ts'
import { AppError } from '../lib/errors.ts'
import type { AddressOf } from '../lib/web/client-address.ts'
import type { AdminAccess } from '../sessions/access/admin-access.ts'

export interface RefuseServersOptions {
  senderOf: (socket: Socket) => Sender
  admin: Pick<AdminAccess, 'isProven'>
  instance: { needsToken: boolean }
  addressOf: AddressOf
}

const SENT_BY_SERVER =
  'This request comes from an MCP server that runs here: it may not change servers or answer approvals.'
const SENDER_UNKNOWN =
  'The program that sent this request can\'t be told from an MCP server that runs here (it has closed the connection, or it runs in a user namespace of its own, as a Flatpak browser does, or its files can\'t be read, as those of an SSH tunnel). Set ADMIN_TOKEN and send it in the header x-admin-token (the page asks for it under "Servers"), or use a program that runs as your own user.'

export function refuseServers(server: FastifyInstance, options: RefuseServersOptions): void {
  const check = async (request: FastifyRequest) => {
    const { method, routeOptions, headers, raw } = request
    // The route, not the address: an address can be written in many ways.
    const isDecision = method !== 'GET' && /^\/api\/(servers|approvals)\b/.test(routeOptions.url ?? '')
    if (!isDecision || options.admin.isProven({ headers, address: options.addressOf(raw) })) return
    const sender = options.senderOf(raw.socket)
    if (sender === 'server') throw new AppError('forbidden', 'sent_by_server', SENT_BY_SERVER)
    // With AUTH_TOKEN, the sender has shown a secret that no server has.
    if (sender === 'unknown' && !options.instance.needsToken)
      throw new AppError('forbidden', 'sender_unknown', SENDER_UNKNOWN)
  }
  server.addHook('onRequest', check)
  // Again when the whole request is there: by now the sender may have closed or passed on its end.
  server.addHook('preHandler', check)
}
