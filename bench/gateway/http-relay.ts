/** A relay that does nothing: an HTTP proxy to the address that it is given, with connections kept open. Says its port on stdout. */
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
