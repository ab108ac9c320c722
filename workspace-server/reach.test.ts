import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { expect, it } from 'vitest'
import { reach } from './reach.ts'

it('reports the targets that accept or answer, and no others', async () => {
  const open = createServer((socket) => socket.end()).listen(0, '127.0.0.1')
  const closed = createServer().listen(0, '127.0.0.1')
  const talks = createSocket('udp4').bind(0, '127.0.0.1')
  const silent = createSocket('udp4').bind(0, '127.0.0.1')
  await Promise.all([open, closed, talks, silent].map((each) => once(each, 'listening')))
  talks.on('message', (_, from) => talks.send('?', from.port, from.address))
  const port = (server: { address(): unknown }) => (server.address() as AddressInfo).port
  const gone = port(closed)
  closed.close()
  const host = '127.0.0.1'
  const targets = [
    { protocol: 'tcp' as const, host, port: port(open) },
    { protocol: 'tcp' as const, host, port: gone },
    { protocol: 'udp' as const, host, port: port(talks) },
    { protocol: 'udp' as const, host, port: port(silent) }
  ]
  expect(await reach({ targets, timeoutMs: 300 })).toEqual({ reached: [0, 2] })
  open.close()
  talks.close()
  silent.close()
})
