/**
 * The way out of a sandbox without a network: accepts connections on a loopback port and sends each as an HTTP/2 stream over
 * stdin and stdout to the orchestrator's proxy, which decides. It decides nothing itself, so tampering with it gains nothing.
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
    log('The network tunnel could not be opened', error)
    process.exit(1)
  })
  server.listen(EGRESS.port, '127.0.0.1', () => session.request({ ':path': EGRESS.ready }).end())
}
