import { once } from 'node:events'
import { createServer as createHttp, request } from 'node:http'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterEach, describe, expect, it } from 'vitest'
import { parseHostPattern } from '../../lib/web/host-pattern.ts'
import { createEgressProxy } from './egress-proxy.ts'

const open: { close(): unknown }[] = []
afterEach(() => {
  for (const one of open.splice(0)) one.close()
})

async function portOf(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  open.push(server)
  return (server.address() as AddressInfo).port
}

async function start(hosts: (web: number) => string[]) {
  const seen: { url: string | undefined; headers: object; body: string }[] = []
  const web = await portOf(
    createHttp(async (incoming, response) => {
      seen.push({ url: incoming.url, headers: incoming.headers, body: await text(incoming) })
      response.writeHead(201, { 'x-from': 'web' }).end('hello')
    })
  )
  const denied: string[] = []
  const patterns = hosts(web).flatMap((host) => parseHostPattern(host) ?? [])
  const lookup = async () => ['127.0.0.1']
  const proxy = await createEgressProxy({
    patterns,
    lookup,
    onDenied: (target, reason) => denied.push(`${target} ${reason}`)
  })
  open.push(proxy)
  const port = await portOf(createServer((socket) => proxy.accept(socket)))
  return { web, seen, denied, port }
}

async function raw(port: number, bytes: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.write(bytes)
  return text(socket)
}

describe('the egress proxy', () => {
  it('forwards a plain request as it is, without what is between client and proxy', async () => {
    const { web, port, seen } = await start((web) => [`api.test:${web}`, `127.0.0.1:${web}`])
    const headers = { 'x-own': '1', 'proxy-authorization': 'Basic x', host: 'other.test' }
    const asked = request({ port, host: '127.0.0.1', method: 'POST', path: `http://api.test:${web}/p?q=1`, headers })
    asked.end('body')
    const [response] = await once(asked, 'response')
    expect([response.statusCode, response.headers['x-from'], await text(response)]).toEqual([201, 'web', 'hello'])
    expect(seen).toMatchObject([{ url: '/p?q=1', body: 'body', headers: { 'x-own': '1', host: `api.test:${web}` } }])
    expect(seen[0]?.headers).not.toHaveProperty('proxy-authorization')
  })

  it('tunnels to a named host', async () => {
    const { web, port } = await start((web) => [`api.test:${web}`, `127.0.0.1:${web}`])
    const through = `CONNECT api.test:${web} HTTP/1.1\r\nhost: api.test:${web}\r\n\r\nGET /x HTTP/1.0\r\n\r\n`
    expect(await raw(port, through)).toMatch(/^HTTP\/1.1 200 .*\r\n\r\nHTTP\/1.1 201 [\s\S]*hello$/)
  })

  // Checked: if they are passed to `writeHead` unchecked, an uncaught RangeError follows.
  it('survives an invalid answer', async () => {
    const hostile = await portOf(
      createServer((socket) => socket.once('data', () => socket.end('HTTP/1.1 042 X\r\ncontent-length: 0\r\n\r\n')))
    )
    const { port } = await start(() => [`api.test:${hostile}`, `127.0.0.1:${hostile}`])
    const get = `GET http://api.test:${hostile}/ HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`
    expect(await raw(port, get)).toMatch(/^HTTP\/1.1 502 /)
  })

  it('says so when a host changes the protocol, which nobody asked it to', async () => {
    const answer = 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'
    const hostile = await portOf(
      createServer((socket) => socket.on('error', () => {}).once('data', () => socket.write(answer)))
    )
    const { port } = await start(() => [`api.test:${hostile}`, `127.0.0.1:${hostile}`])
    const get = `GET http://api.test:${hostile}/ HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`
    expect(await raw(port, get)).toMatch(/^HTTP\/1.1 502 /)
  })

  it.each(['GET', 'DELETE', 'POST'])('forwards a body of unknown length with %s', async (method) => {
    const { web, port, seen } = await start((web) => [`127.0.0.1:${web}`])
    const head = `${method} http://127.0.0.1:${web}/ HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked`
    expect(await raw(port, `${head}\r\n\r\n4\r\nbody\r\n0\r\n\r\n`)).toMatch(/^HTTP\/1.1 201 /)
    expect(seen).toMatchObject([{ body: 'body' }])
  })

  it('refuses the rest with a sentence, and tells', async () => {
    const { web, port, denied, seen } = await start((web) => [`api.test:${web}`])
    const refused = await raw(port, `CONNECT evil.test:${web} HTTP/1.1\r\nhost: x\r\n\r\n`)
    expect(refused).toMatch(/^HTTP\/1.1 403 [\s\S]*mcp-orchestrator: evil\.test:\d+ is refused: it is not on the list/)
    const private1 = await raw(port, `GET http://api.test:${web}/ HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`)
    expect(private1).toMatch(/^HTTP\/1.1 403 [\s\S]*leads to 127\.0\.0\.1, which is not public/)
    expect(denied).toEqual([
      `evil.test:${web} it is not on the list`,
      `api.test:${web} it leads to 127.0.0.1, which is not public and not on the list itself`
    ])
    expect(seen).toEqual([])
  })

  it.each([
    'GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n',
    'GET https://a.test/ HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n',
    'CONNECT nonsense HTTP/1.1\r\nhost: x\r\n\r\n'
  ])('answers 400 to %j', async (bytes) => {
    const { port } = await start(() => ['*'])
    expect(await raw(port, bytes)).toMatch(/^HTTP\/1.1 400 /)
  })

  it('says when a host does not answer', async () => {
    const closed = await start(() => [])
    const { port } = await start(() => ['127.0.0.1:1', 'dead.test:1'])
    expect(closed.denied).toEqual([])
    expect(await raw(port, 'CONNECT dead.test:1 HTTP/1.1\r\nhost: x\r\n\r\n')).toMatch(
      /^HTTP\/1.1 502 [\s\S]*ECONNREFUSED/
    )
  })

  it('ends what is open when it is closed, and what is no HTTP', async () => {
    const { web, port } = await start((web) => [`127.0.0.1:${web}`])
    const socket = connect(port, '127.0.0.1')
    socket.write(`CONNECT 127.0.0.1:${web} HTTP/1.1\r\nhost: x\r\n\r\n`)
    await once(socket, 'data')
    for (const one of open.splice(0)) one.close()
    await once(socket, 'close')
    const second = await start(() => [])
    expect(await raw(second.port, '\x16\x03\x01 no http at all\r\n\r\n')).toBe('')
  })
})
