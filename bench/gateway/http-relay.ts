/** A relay that only copies bytes: an HTTP proxy to an address, with keep-alive connections. Prints its port on stdout. */
import { Agent, createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'

const target = new URL(process.argv[2] ?? '')
const agent = new Agent({ keepAlive: true })
const server = createServer((incoming, outgoing) => {
  const { method, headers, url } = incoming
  const onward = request({ host: target.hostname, port: target.port, path: url, method, headers, agent }, (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
    answer.pipe(outgoing)
  })
  onward.on('error', () => outgoing.destroy())
  incoming.pipe(onward)
})
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port))
