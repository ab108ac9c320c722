import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { Redis } from 'ioredis'
import { Server } from 'socket.io'
import { io } from 'socket.io-client'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { ownRedis } from '../../../tests/support/own-redis.ts'
import { testRedisUrl } from '../../../tests/support/test-redis.ts'
import { silentLogger } from '../../lib/logger.ts'
import { openSocketAdapter } from './socket-adapter.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

interface Instance {
  io: Server
  /** The events that its tab has received. */
  heard: string[]
}

/** An instance with one tab. */
async function instance(url: string, options: { keepMs?: number; deployment?: string } = {}): Promise<Instance> {
  const { adapter, close } = openSocketAdapter({ url, logger: silentLogger, ...options })
  const http = createHttpServer().listen(0, '127.0.0.1')
  await once(http, 'listening')
  const server = new Server(http, { adapter })
  closers.push(async () => {
    await server.close()
    close()
  })
  const tab = io(`http://127.0.0.1:${(http.address() as AddressInfo).port}`, { transports: ['websocket'] })
  closers.push(() => tab.disconnect())
  const heard: string[] = []
  tab.on('word', (word: string) => heard.push(word))
  await vi.waitFor(() => expect(tab.connected).toBe(true))
  return { io: server, heard }
}

/** A proxy to Redis that can silently drop everything on its open connections. */
async function leakyWay(url: string): Promise<{ url: string; lose(): void }> {
  const { hostname, port, pathname } = new URL(url)
  const lost = new Set<Socket>()
  const open = new Set<Socket>()
  const proxy = createServer((client) => {
    const server = connect(Number(port), hostname)
    open.add(client)
    client.on('error', () => {}).on('close', () => server.destroy())
    server.on('error', () => {}).on('close', () => client.destroy())
    client.on('data', (chunk) => lost.has(client) || server.write(chunk))
    server.on('data', (chunk) => lost.has(client) || client.write(chunk))
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  closers.push(() => {
    for (const socket of open) socket.destroy()
    proxy.close()
  })
  return {
    url: `redis://127.0.0.1:${(proxy.address() as AddressInfo).port}${pathname}`,
    lose: () => {
      for (const socket of open) lost.add(socket)
    }
  }
}

describe('the live channel', () => {
  it('carries nothing to another deployment on the same Redis', async () => {
    const url = await testRedisUrl()
    const [one, two, other] = [await instance(url), await instance(url), await instance(url, { deployment: 'other' })]
    await vi.waitFor(() => {
      one.io.emit('word', 'hello')
      expect(two.heard).toContain('hello')
    })
    other.io.emit('word', 'mine')
    await vi.waitFor(() => expect(other.heard).toEqual(['mine']))
    one.io.emit('word', 'last')
    await vi.waitFor(() => expect(two.heard).toContain('last'))
    expect(two.heard).not.toContain('mine')
    expect(other.heard).toEqual(['mine'])
  })

  it('sends and receives again after its connections died silently', async () => {
    const url = await testRedisUrl()
    const way = await leakyWay(url)
    const a = await instance(way.url)
    const b = await instance(url)
    const reach = (from: Server, { heard }: Instance, word: string) =>
      vi.waitFor(
        () => {
          from.emit('word', word)
          expect(heard).toContain(word)
        },
        { interval: 100 }
      )
    await reach(a.io, b, 'from a')
    await reach(b.io, a, 'from b')
    way.lose()
    await reach(a.io, a, 'to my own tab')
    await reach(a.io, b, 'from a again')
    await reach(b.io, a, 'from b again')
  })

  it('deletes what it no longer needs, so that a Redis that is full of it works again', async () => {
    const full = await ownRedis({ args: ['--maxmemory', '30mb', '--maxmemory-policy', 'noeviction'] })
    closers.push(() => full.kill())
    const redis = new Redis(full.url)
    closers.push(() => redis.disconnect())
    const large = 'x'.repeat(2 ** 20)
    while (await redis.xadd('mcpo/default:socket-stream', '*', 'data', large).catch(() => false));
    await expect(redis.set('key', large)).rejects.toThrow('OOM')
    await instance(full.url, { keepMs: 500 })
    await vi.waitFor(() => redis.set('key', large))
  })
})
