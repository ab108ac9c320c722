import { connect } from 'node:net'
import { buffer } from 'node:stream/consumers'
import cookie from '@fastify/cookie'
import fastify from 'fastify'
import { afterEach, expect, it } from 'vitest'
import { fakeWorkspace } from '../../sessions/files/fake-workspace.ts'
import { WorkspaceTransfer } from '../../sessions/files/workspace-transfer.ts'
import { registerFileRoutes } from './file-routes.ts'

/** Larger than what is read whole, because it can be edited. */
const SIZE = 2 * 1024 * 1024
const servers: { close(): unknown }[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

async function serve(...input: Parameters<typeof fakeWorkspace>): Promise<string> {
  const server = fastify({ forceCloseConnections: true })
  servers.push(server)
  await server.register(cookie)
  registerFileRoutes(server, { check: async () => {} }, new WorkspaceTransfer(fakeWorkspace(...input)), 1)
  return `${await server.listen({ host: '127.0.0.1', port: 0 })}/api/sessions/s`
}

const part = (bytes: number) => ({
  content: [],
  structuredContent: { content: Buffer.alloc(bytes, 'y').toString('base64'), size: SIZE }
})

// Checked: with `archive.pipe(createGzip())`, the error is unhandled.
it('an archive whose download is broken off ends nothing else', async () => {
  const stopped = new AbortController()
  let reads = 0
  const files = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`f${i}`, '']))
  const base = await serve(files, () => {
    reads += 1
    return part(SIZE)
  })
  const { body } = await fetch(`${base}/archive`, { signal: stopped.signal })
  await body?.getReader().read()
  stopped.abort()
  const seen = () => new Promise<number>((resolve) => setImmediate(() => resolve(reads)))
  for (let before = -1; before !== reads; ) before = await seen()
  expect((await fetch(`${base}/files`)).status).toBe(200)
})

// Checked: if chunks are sent as they come, 100 bytes arrive instead of 5.
it('a file that grows can not go on into the next answer of the connection', async () => {
  const base = await serve({}, ({ offset }) => part(offset === 0 ? SIZE - 5 : 100))
  const { hostname, port, pathname } = new URL(`${base}/file`)
  const socket = connect(Number(port), hostname)
  socket.write(`GET ${pathname}?path=a HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`)
  const answer = await buffer(socket)
  expect(answer.length - answer.indexOf('\r\n\r\n') - 4).toBe(SIZE)
})

it('a file that becomes shorter breaks its download off', async () => {
  const base = await serve({}, ({ offset }) => part(offset === 0 ? SIZE - 5 : 0))
  const answer = await fetch(`${base}/file?path=a`)
  await expect(answer.arrayBuffer()).rejects.toThrow()
})
