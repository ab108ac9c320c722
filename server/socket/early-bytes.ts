import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Server } from 'socket.io'
import { AppError } from '../lib/errors.ts'
import type { PendingConnections, RawConnection } from './pending-connections.ts'

/** A handshake with its tokens is much smaller. */
const MAX_EARLY_BYTES = 64 * 1024

interface Transport {
  name: string
  /** For a WebSocket, the library's own socket object. It has the TCP connection in a field without a public name. */
  socket?: { _socket?: Socket }
}

interface Connection extends RawConnection {
  id: string
  transport: Transport
  on(event: 'upgrading', listener: (transport: Transport) => void): unknown
}

type EngineRequest = IncomingMessage & { _query?: { sid?: string } }
type Next = (error?: unknown) => void

/**
 * Limits what a connection may send before it has logged in. The engine keeps up to a megabyte of an unfinished message of each
 * connection, and anyone can open thousands.
 */
export function limitEarlyBytes(engine: Server['engine'], pending: Pick<PendingConnections, 'has'>): void {
  const connections = new Map<string, Connection>()
  engine.on('connection', (connection: Connection) => {
    connections.set(connection.id, connection)
    connection.once('close', () => connections.delete(connection.id))
    watch(connection, connection.transport, pending)
    connection.on('upgrading', (transport) => watch(connection, transport, pending))
  })
  engine.use((request: EngineRequest, _response: unknown, next: Next) => {
    const connection = connections.get(request._query?.sid ?? '')
    const isEarly = request.method === 'POST' && connection !== undefined && pending.has(connection)
    // A request without a length could go on for ever.
    const isSmall = Number(request.headers['content-length'] ?? Number.NaN) <= MAX_EARLY_BYTES
    next(isEarly && !isSmall ? new AppError('invalid', 'invalid_request', 'Too much before the login.') : undefined)
  })
}

function watch(connection: Connection, { socket }: Transport, pending: Pick<PendingConnections, 'has'>): void {
  const tcp = socket?._socket
  let bytes = 0
  const count = (chunk: Buffer) => {
    if (!pending.has(connection)) return void tcp?.off('data', count)
    bytes += chunk.length
    if (bytes <= MAX_EARLY_BYTES) return
    connection.close(true)
    // The library would go on reading until the client closes too.
    tcp?.destroy()
  }
  tcp?.prependListener('data', count)
}
