/**
 * The way out of a sandbox without a network: takes connections on a port of its loopback and carries each as a stream of HTTP/2
 * over stdin and stdout, where the orchestrator's proxy decides. Decides nothing itself: whoever tampers with it gains no more.
 */
import { connect } from 'node:http2'
import { createServer, type Socket } from 'node:net'
import { Duplex, pipeline } from 'node:stream'
import { log } from './log.ts'
import { EGRESS } from './protocol.ts'

export function runEgressRelay(): void {
  const createConnection = () => Duplex.from({ readable: process.stdin, writable: process.stdout })
  const session = connect(EGRESS.origin, { createConnection })
  session.on('error', () => {})
  session.on('close', () => process.exit(0))

  const carry = (socket: Socket) => {
    socket.on('error', () => {})
    const way = session.request({ ':method': 'CONNECT', ':authority': EGRESS.authority })
    way.on('error', () => socket.destroy())
    pipeline(socket, way, () => {})
    pipeline(way, socket, () => {})
  }
  const server = createServer({ allowHalfOpen: true }, carry)
  server.on('error', (error) => {
    log('The way out could not be opened', error)
    process.exit(1)
  })
  server.listen(EGRESS.port, '127.0.0.1', () => session.request({ ':path': EGRESS.ready }).end())
}
