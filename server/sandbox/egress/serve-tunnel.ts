import { createServer } from 'node:http2'
import type { Duplex } from 'node:stream'
import { EGRESS } from '../../../workspace-server/protocol.ts'
import type { EgressProxy } from './egress-proxy.ts'

const MAX_STREAMS = 64

/**
 * Our end of the tunnel out of a container. The other end is `workspace-server/egress-relay.ts`, which any process there may
 * imitate.
 */
export function serveTunnel(connection: Duplex, proxy: EgressProxy, onReady: () => void): void {
  const server = createServer({ settings: { maxConcurrentStreams: MAX_STREAMS } })
  server.on('session', (session) => session.on('error', () => {}))
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {})
    // The stream was opened and reset at once. Answering it would throw and end this process.
    if (stream.destroyed || stream.closed) return
    if (headers[':method'] === 'CONNECT') {
      stream.respond({ ':status': 200 })
      proxy.accept(stream)
      return
    }
    if (headers[':path'] === EGRESS.ready) onReady()
    stream.respond({ ':status': 200 }, { endStream: true })
  })
  server.emit(
    'connection',
    connection.on('error', () => {})
  )
}
