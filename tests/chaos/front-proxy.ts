/** A small balancer in front of the instances, over plain TCP: an instance that is alive gets the next connection. */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import type { Random } from './random.ts'

export interface FrontProxy {
  url: string
  /** Cuts some of the open connections in the middle. */
  cut(random: Random): number
  close(): Promise<void>
}

export async function openFrontProxy(ports: () => number[]): Promise<FrontProxy> {
  const open = new Set<Socket>()
  let turn = 0
  const server = createServer((client) => {
    open.add(client)
    client.on('error', () => {})
    client.once('close', () => open.delete(client))
    const targets = ports()
    tryNext(client, targets, turn++, targets.length)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('The proxy has no port.')
  return {
    url: `http://127.0.0.1:${address.port}`,
    cut(random) {
      const victims = [...open].filter(() => random.chance(0.5))
      for (const socket of victims) socket.resetAndDestroy()
      return victims.length
    },
    async close() {
      for (const socket of open) socket.destroy()
      server.close()
      await once(server, 'close')
    }
  }
}

function tryNext(client: Socket, ports: number[], at: number, left: number): void {
  const port = ports[at % Math.max(1, ports.length)]
  if (left <= 0 || port === undefined || client.destroyed) {
    client.destroy()
    return
  }
  const upstream = connect(port, '127.0.0.1')
  let isOpen = false
  upstream.once('connect', () => {
    isOpen = true
    client.pipe(upstream).pipe(client)
  })
  upstream.on('error', () => {
    if (isOpen) client.destroy()
    else tryNext(client, ports, at + 1, left - 1)
  })
  upstream.once('close', () => {
    if (isOpen) client.destroy()
  })
  client.once('close', () => upstream.destroy())
}
