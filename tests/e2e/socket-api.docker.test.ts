import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { text } from 'node:stream/consumers'
import { io } from 'socket.io-client'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { packageRoot } from '../../server/lib/files/package-root.ts'
import { eventually } from '../support/eventually.ts'
import { type Served, serve, stopServers } from '../support/serve.ts'
import { discard } from '../support/temporary-folder.ts'

const FRONT_END = 'http://localhost:5173'
let server: Served
beforeAll(async () => {
  // Checked: in this mode, a client that answers the card before the call has run is told `stale`.
  server = await serve({ ALLOWED_ORIGINS: FRONT_END, APPROVAL_MODE: 'preview' })
})
afterAll(stopServers)

/** The client in the guide, in a folder from which it finds its library. */
function guideClient(): { file: string; remove(): void } {
  const guide = readFileSync(join(packageRoot(), 'docs/guides/socket-api.md'), 'utf8')
  const [, code = ''] = /```js\n([\s\S]*?)```/.exec(guide) ?? []
  expect(code.split('\n').filter((line) => line.trim() !== '').length).toBeLessThanOrEqual(42)
  const folder = join(packageRoot(), 'node_modules/.cache', `guide-${randomUUID()}`)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'client.mjs'), code)
  return { file: join(folder, 'client.mjs'), remove: () => discard(folder) }
}

it.each([
  ['y', /Result: .*1234/s],
  ['n', /\(y\/n\) $/]
])('the client in the guide asks, is told %s, and shows the answer', async (answer, shown) => {
  const { file, remove } = guideClient()
  const child = spawn(process.execPath, [file, server.url, 'run echo $((617 * 2))'], {
    stdio: ['pipe', 'pipe', 'pipe']
  })
  child.stderr.on('data', (chunk) => {
    if (String(chunk).includes('(y/n)')) child.stdin.write(`${answer}\n`)
  })
  const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  expect(`${errors}${output}`).toMatch(/Run workspace\/execute_command/)
  expect(errors).toMatch(shown)
  expect(child.exitCode).toBe(0)
  remove()
})

/** A socket with handshake data as another program might send it. */
function connected(auth: object, headers: Record<string, string> = {}) {
  const socket = io(server.url, { auth, extraHeaders: headers, transports: ['websocket'], forceNew: true })
  const heard: { event: string; data: Record<string, unknown> }[] = []
  socket.onAny((event, data) => heard.push({ event, data }))
  socket.on('connect_error', (error) => heard.push({ event: 'connect_error', data: { message: error.message } }))
  const find = (event: string) => heard.find((one) => one.event === event)?.data
  const hear = async (event: string) => {
    await eventually(event, () => find(event) !== undefined)
    return find(event) ?? {}
  }
  return { socket, hear }
}

it('takes the session from `auth`, its token as Bearer, and answers a command without an ack', async () => {
  const sessionId = `api-${randomUUID()}`
  const first = connected({ sessionId })
  const { token } = await first.hear('system:ready')
  first.socket.close()
  const bearer = { authorization: `Bearer ${token}` }
  const second = connected({ sessionId }, bearer)
  await second.hear('session:snapshot')
  second.socket.emit('message', { words: 'of an unknown shape' })
  expect(await second.hear('agent:error')).toMatchObject({ code: 'invalid_payload' })
  second.socket.close()
  expect((await fetch(`${server.url}/api/sessions/${sessionId}`, { headers: bearer })).status).toBe(200)
  expect((await fetch(`${server.url}/api/sessions/${sessionId}`)).status).toBe(403)
})

// Checked: without the checks, a session id that is no text or a command that is a number ends the whole server.
it('answers a handshake or a command of any shape, and goes on', async () => {
  const shapes: unknown[] = [{ toString: 1 }, { toString: null, valueOf: null }, [{ toString: 1 }], [], true, null]
  for (const sessionId of shapes) {
    const odd = connected({ sessionId, accessToken: sessionId, ownerProof: sessionId, token: sessionId })
    expect(await odd.hear('connect_error')).toMatchObject({ message: expect.stringContaining('session id') })
    odd.socket.close()
  }
  const inside = connected({ sessionId: `api-${randomUUID()}` })
  await inside.hear('session:snapshot')
  for (const name of [7, '', '__proto__', 'constructor'])
    expect(await inside.socket.emitWithAck(name as string, {})).toMatchObject({ error: { code: 'unknown_command' } })
  inside.socket.close()
  expect(server.child.exitCode).toBeNull()
})

// Checked: without a prefix, the room of the session is also that of the other socket, which gets its events.
it('sends nothing of a session to a socket whose id is the name of the session', async () => {
  const bystander = connected({ sessionId: `api-${randomUUID()}` })
  await bystander.hear('session:snapshot')
  const heard: string[] = []
  bystander.socket.onAny((event) => heard.push(event))
  const named = connected({ sessionId: bystander.socket.id })
  await named.hear('session:snapshot')
  await named.socket.emitWithAck('message', 'hello')
  await named.hear('turn:end')
  // Its own answer comes after everything that was sent to it before.
  await bystander.socket.emitWithAck('turn:cancel', {})
  expect(heard).not.toContain('user:message')
  named.socket.close()
  bystander.socket.close()
})

/** Frames of a WebSocket, masked with zeros: the first, unfinished part of a message, and a question whether it is alive. */
const PART_OF_100_KB = Buffer.from([0x02, 0xff, 0, 0, 0, 0, 0, 0x01, 0x86, 0xa0, 0, 0, 0, 0])
const PING = Buffer.from([0x89, 0x80, 0, 0, 0, 0])
const PONG = Buffer.from([0x8a, 0])

// Checked: without the limit, the WebSocket stays open with a part of a message in memory, and the request is answered with 200.
it('keeps little of what a connection sends before it logs in, and takes large messages after it', async () => {
  const path = '/socket.io/?EIO=4&transport='
  const upgrade = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' }
  const headers = { ...upgrade, 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' }
  const early = await new Promise<Duplex>((resolve) => {
    const asked = request(`${server.url}${path}websocket`, { headers })
    asked.on('upgrade', (_response, socket) => resolve(socket)).end()
  })
  const outcome = new Promise<string>((resolve) => {
    early.on('error', () => {}).on('close', () => resolve('closed'))
    early.on('data', (chunk: Buffer) => chunk.includes(PONG) && resolve('kept'))
  })
  early.write(Buffer.concat([PART_OF_100_KB, Buffer.alloc(100_000), PING]))
  expect(await outcome).toBe('closed')
  const opened = await (await fetch(`${server.url}${path}polling`)).text()
  const { sid } = JSON.parse(opened.slice(1)) as { sid: string }
  const post = (body: string) => fetch(`${server.url}${path}polling&sid=${sid}`, { method: 'POST', body })
  expect((await post(`4${'x'.repeat(100_000)}`)).status).toBe(400)
  const inside = connected({ sessionId: `api-${randomUUID()}` })
  await inside.hear('session:snapshot')
  const ack = await inside.socket.emitWithAck('message', 'x'.repeat(200_000))
  expect(ack).toMatchObject({ error: { code: 'invalid_payload' } })
  inside.socket.close()
})

it('lets a front end of an allowed origin in, and no other', async () => {
  const ask = (origin: string, init: RequestInit = {}) =>
    fetch(`${server.url}/api/sessions`, { method: 'POST', ...init, headers: { origin, ...init.headers } })
  const preflight = await ask(FRONT_END, {
    method: 'OPTIONS',
    headers: { 'access-control-request-method': 'POST', 'access-control-request-headers': 'x-session-token' }
  })
  expect([preflight.status, preflight.headers.get('access-control-allow-headers')]).toEqual([204, 'x-session-token'])
  const opened = await ask(FRONT_END)
  expect(opened.headers.get('access-control-allow-origin')).toBe(FRONT_END)
  expect(opened.headers.get('access-control-allow-credentials')).toBeNull()
  const { sessionId, token } = (await opened.json()) as { sessionId: string; token: string }
  const inside = connected({ sessionId, token }, { origin: FRONT_END })
  await inside.hear('session:snapshot')
  inside.socket.close()
  expect((await ask('http://localhost:5174')).status).toBe(403)
  const outside = connected({ sessionId, token }, { origin: 'http://localhost:5174' })
  await outside.hear('connect_error')
  outside.socket.close()
})
