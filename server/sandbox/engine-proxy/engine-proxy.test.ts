import { EventEmitter, once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { discard, temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { silentLogger } from '../../lib/logger.ts'
import { LABEL } from '../docker/engine/container-spec.ts'
import { createEngineProxy } from './engine-proxy.ts'

const dir = temporaryFolder()
const engineSocket = join(dir, 'engine.sock')
const proxySocket = join(dir, 'proxy.sock')
/** The requests that reached the engine, with their bodies. */
const seen: string[] = []
const servers: Server[] = []

/** More than the kernel buffers for a reader that stalls, less than that and a stream's own buffer. */
const LAST_WORDS = 'x'.repeat(300_000)
const engineCloses = new EventEmitter()
const OURS = 'a'.repeat(64)
const EXEC = 'e'.repeat(64)
const SMUGGLED = 'POST /containers/create HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}'

beforeAll(async () => {
  const engine = createServer(async (request, response) => {
    const body = await text(request)
    if (request.method !== 'GET') seen.push(`${request.method} ${request.url} ${body}`)
    if (request.url === '/containers/garbled/json') response.end('{"Config":')
    else if (request.url === `/exec/${EXEC}/json`) response.end(JSON.stringify({ ID: EXEC, ContainerID: OURS }))
    else if (request.url === '/containers/ours/json' || request.url === `/containers/${OURS}/json`) {
      response.end(JSON.stringify({ Id: OURS, Config: { Labels: { [LABEL.app]: 'sandbox' } } }))
    } else response.writeHead(/^\/exec\/|none/.test(request.url ?? '') ? 404 : 200).end('{"message":"so it is"}')
  })
  engine.on('upgrade', (request, socket: Socket, head) => {
    if (request.url?.startsWith(`/containers/${OURS}/attach`)) {
      socket.write('HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\nhello ')
      socket.write(head)
      if (request.url.endsWith('logs=1')) {
        socket.once('close', () => engineCloses.emit('close'))
        return void socket.end(LAST_WORDS)
      }
      return void socket.pipe(socket)
    }
    // As Docker does with a start that fails: an answer, and then the connection is open for the next request.
    seen.push(`POST ${request.url} `)
    const take = (bytes: Buffer) => seen.push(`${seen.pop()}${bytes}`)
    take(head)
    socket.on('data', take)
    socket.write('HTTP/1.1 404 Not Found\r\nContent-Length: 8\r\n\r\nso it is')
  })
  const proxy = createEngineProxy({ engineSocket, networks: [], logger: silentLogger })
  for (const [server, path] of [[engine, engineSocket] as const, [proxy, proxySocket] as const]) {
    server.listen(path)
    servers.push(server)
    await once(server, 'listening')
  }
})

beforeEach(() => void seen.splice(0))

afterAll(() => {
  for (const server of servers) {
    server.close()
    server.closeAllConnections()
  }
  discard(dir)
})

/** Sends bytes as they are, and more when the answer has come; resolves to all that came back until `last` of it, then quiet. */
async function raw(bytes: string, { after, more, last = after }: { after: RegExp; more: string; last?: RegExp }) {
  const socket = connect(proxySocket)
  let answer = ''
  socket.on('data', (chunk) => {
    const had = after.test(answer)
    answer += chunk
    if (last.test(answer)) socket.setTimeout(200, () => socket.destroy())
    if (!had && after.test(answer)) socket.write(more)
  })
  socket.on('error', () => {})
  socket.write(bytes)
  await new Promise((resolve) => socket.once('close', resolve))
  return answer
}

// Checked: if the body is sent on after "Content-Length: 0", the engine sees the second request too.
it('passes on no second request in the body of an allowed one', async () => {
  const body = `${SMUGGLED.length.toString(16)}\r\n${SMUGGLED}\r\n0\r\n\r\n`
  const answer = await raw(
    `POST /containers/ours/start HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${body}`,
    { after: /let this through/, more: '' }
  )
  expect(answer).toMatch(/^HTTP\/1.1 403/)
  expect(seen).toEqual([])
})

// Checked: if any body is sent on, the engine gets the mount.
it.each(['start', 'stop', 'attach'])('sends no body on with %s: old engines took mounts from one', async (verb) => {
  const mount = '{"Binds":["/:/host"]}'
  const answer = await raw(
    `POST /containers/ours/${verb} HTTP/1.1\r\nHost: x\r\nContent-Length: ${mount.length}\r\n\r\n${mount}`,
    { after: /let this through|so it is/, more: '' }
  )
  expect(answer).toMatch(verb === 'attach' ? /^HTTP\/1.1 200/ : /^HTTP\/1.1 403/)
  expect(seen).toEqual(verb === 'attach' ? [`POST /containers/${OURS}/attach `] : [])
})

it.each(['', 'Connection: Upgrade\r\nUpgrade: tcp\r\n'])('judges how a process is started (%j)', async (upgrade) => {
  const start = (body: string) =>
    raw(`POST /exec/${EXEC}/start HTTP/1.1\r\nHost: x\r\n${upgrade}Content-Length: ${body.length}\r\n\r\n${body}`, {
      after: /let this through|Forbidden|so it is/,
      more: ''
    })
  expect(await start('{"Detach":false,"HostConfig":{}}')).toMatch(/^HTTP\/1.1 403/)
  expect(await start('no JSON')).toMatch(/^HTTP\/1.1 403/)
  expect(seen).toEqual([])
  const plain = '{"hijack":true,"stdin":true,"Detach":false,"Tty":false}'
  expect(await start(plain)).toMatch(/^HTTP\/1.1 404/)
  expect(seen).toEqual([`POST /exec/${EXEC}/start ${plain}`])
})

// Checked: if the streams are joined before the engine has agreed, it reads the next bytes as another request.
it.each(['', SMUGGLED])('passes nothing on after a stream that the engine did not open (%j at once)', async (early) => {
  const answer = await raw(
    `POST /exec/${EXEC}/start HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 2\r\n\r\n{}${early}`,
    { after: /so it is/, more: SMUGGLED }
  )
  expect(answer).toMatch(/^HTTP\/1.1 404/)
  expect(seen).toEqual([`POST /exec/${EXEC}/start {}`])
})

// Checked: if the connection is closed at once, a client that is still sending gets EPIPE instead of the answer.
it('keeps the connection open while a client still sends a request that is refused', async () => {
  const answer = await raw('POST /build HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nfirst', {
    after: /let this through/,
    more: 'laterGET /_ping HTTP/1.1\r\nHost: x\r\n\r\n',
    last: /HTTP\/1.1 200/
  })
  expect(answer.match(/HTTP\/1.1 \d+/g)).toEqual(['HTTP/1.1 403', 'HTTP/1.1 200'])
})

it('joins a stream that the engine opened, with what came early', async () => {
  const answer = await raw(
    'POST /containers/ours/attach?stream=1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\nearly ',
    { after: /hello early/, more: 'late', last: /late$/ }
  )
  expect(answer).toMatch(/^HTTP\/1.1 101 /)
  expect(answer).toMatch(/hello early late$/)
})

it('joins a stream without the body that came with it', async () => {
  const answer = await raw(
    'POST /containers/ours/attach?stream=1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 4\r\n\r\nbodyearly ',
    { after: /hello early/, more: 'late', last: /late$/ }
  )
  expect(answer).toMatch(/hello early late$/)
})

// Checked: if the client's side is closed together with the engine's, the end of the output is missing.
it('passes on all that the engine said before it closed, however late it is read', async () => {
  const closed = once(engineCloses, 'close')
  const socket = connect(proxySocket)
  socket.write('POST /containers/ours/attach?logs=1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n')
  await closed
  expect(await text(socket)).toContain(LAST_WORDS)
})

// Checked: if nobody catches the error, the engine's answer ends the proxy, and the call is never answered.
it('refuses a call if the engine gives no usable answer about its container', async () => {
  const ask = 'POST /containers/garbled/start HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n'
  expect(await raw(ask, { after: /let this through/, more: '' })).toMatch(/^HTTP\/1.1 403/)
  expect(seen).toEqual([])
})

// Checked: if the name and the query are sent on unchanged, the engine gets both of them.
it.each([
  ['POST /v1.41/containers/ours/stop?t=3', `POST /v1.41/containers/${OURS}/stop?t=3 `],
  ['DELETE /containers/ours?force=1', `DELETE /containers/${OURS}?force=1 `]
])('names the container that was checked to the engine by its full id (%s)', async (ask, asked) => {
  await raw(`${ask} HTTP/1.1\r\nHost: x\r\n\r\n`, { after: /so it is/, more: '' })
  expect(seen).toEqual([asked])
})

it.each(['', 'Connection: Upgrade\r\nUpgrade: tcp\r\n'])(
  'makes no call about something that does not exist (%j)',
  async (upgrade) => {
    for (const path of ['/containers/none/attach', `/exec/${'0'.repeat(64)}/start`]) {
      const answer = await raw(`POST ${path} HTTP/1.1\r\nHost: x\r\n${upgrade}Content-Length: 0\r\n\r\n`, {
        after: /No such/,
        more: ''
      })
      expect(answer).toMatch(/^HTTP\/1.1 404 /)
    }
    expect(seen).toEqual([])
  }
)

it('joins no stream whose body has no known length', async () => {
  const chunked = 'Connection: Upgrade\r\nUpgrade: tcp\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n'
  const answer = await raw(`POST /exec/${EXEC}/start HTTP/1.1\r\nHost: x\r\n${chunked}`, {
    after: /known length/,
    more: ''
  })
  expect(answer).toMatch(/^HTTP\/1.1 403 /)
  expect(seen).toEqual([])
})
