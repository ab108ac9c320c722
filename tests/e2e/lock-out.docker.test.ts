/** Someone at the same address, without a token, who tries to keep out those who have one. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { browserOf } from '../support/browser-owner.ts'
import { eventually } from '../support/eventually.ts'
import { type Served, serve, stopServers } from '../support/serve.ts'

const accessToken = 'an access token of some length'
let server: Served
beforeAll(async () => {
  server = await serve({
    AUTH_TOKEN: accessToken,
    MESSAGES_PER_MINUTE: '2',
    REQUESTS_PER_MINUTE: '50',
    MAX_CONNECTIONS: '5'
  })
})
afterAll(stopServers)

const newId = () => `lock-${randomUUID()}`
const socketUrl = () => `ws://127.0.0.1:${server.port}/socket.io/?EIO=4&transport=websocket&sessionId=${newId()}`
const request = (path: string, headers: Record<string, string> = {}) => fetch(server.url + path, { headers })
const holder = { authorization: `Bearer ${accessToken}` }

/** Everyone who has the token can still do everything. */
async function expectOpen(): Promise<void> {
  expect((await request('/api/models', holder)).status).toBe(200)
  await server.connect(newId(), { accessToken }).snapshot()
  const login = await fetch(`${server.url}/api/login`, {
    method: 'POST',
    body: JSON.stringify({ token: accessToken }),
    headers: { 'content-type': 'application/json', ...browserOf('me', server.url).headers }
  })
  expect(login.status).toBe(204)
}

async function openSockets(
  count: number,
  onOpen: (socket: WebSocket) => void = () => {},
  headers: Record<string, string> = {}
): Promise<WebSocket[]> {
  const sockets = Array.from({ length: count }, () => new WebSocket(socketUrl(), { headers }))
  const settled = sockets.map((socket) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    for (const event of ['open', 'error', 'close']) socket.addEventListener(event, () => resolve())
    socket.addEventListener('open', () => onOpen(socket))
    return promise
  })
  await Promise.all(settled)
  return sockets
}

// Checked: if requests for open paths are counted by address, 70 of 120 are answered 429. If strangers are counted with everyone at
// their address, the token holder gets 429.
it('requests for health, for the page and without a token use up nothing of those who have it', async () => {
  for (const path of ['/healthz', '/readyz', '/', '/favicon.svg']) {
    const answers = await Promise.all(Array.from({ length: 120 }, () => request(path)))
    expect(answers.filter(({ status }) => status === 429)).toEqual([])
  }
  const refused = await Promise.all(Array.from({ length: 120 }, () => request('/api/models')))
  const statuses = refused.map(({ status }) => status)
  expect([
    statuses.filter((status) => status === 401).length,
    statuses.filter((status) => status === 429).length
  ]).toEqual([50, 70])
  expect(Number(refused.find(({ status }) => status === 429)?.headers.get('retry-after'))).toBeGreaterThan(0)
  await expectOpen()
})

// Checked: if failed attempts don't close the connection, there are 200 answers.
it('one WebSocket with 200 refused CONNECTs is closed after a few, and keeps nobody out', async () => {
  let answers = 0
  const [socket] = await openSockets(1, (open) => {
    for (let at = 0; at < 200; at++) open.send('40{"accessToken":"wrong"}')
  })
  socket?.addEventListener('message', ({ data }) => {
    if (String(data).startsWith('44')) answers += 1
  })
  await eventually('it is closed', () => socket?.readyState === WebSocket.CLOSED)
  expect(answers).toBeLessThanOrEqual(5)
  await expectOpen()
})

// Checked: without a limit per address, the connections stay until they time out.
it('keeps only a few of 1,000 connections that never log in, for a short time; token holders still get in', async () => {
  const sockets: WebSocket[] = []
  const open = () => sockets.filter(({ readyState }) => readyState === WebSocket.OPEN).length
  // An older connection of a token holder, on which nobody comes in either, is still open: so the strangers' were not closed
  // because their time was up.
  await eventually('few are open before their time is up', async () => {
    const [older] = await openSockets(1, () => {}, holder)
    sockets.push(...(await openSockets(100)))
    await eventually('few are open', () => open() <= 50)
    const isOlderOpen = older?.readyState === WebSocket.OPEN
    older?.close()
    return isOlderOpen
  })
  while (sockets.length < 1000) sockets.push(...(await openSockets(100)))
  await eventually('few are open', () => open() <= 50)
  expect(open()).toBeGreaterThan(0)
  await expectOpen()
  await eventually('none is open', () => open() === 0, 60_000)
})

// Checked: if requests or connections are counted by address, the other person is refused.
it('each person is counted apart: a person over the limit is told when to come back, and the others go on', async () => {
  const ask = (browser: string) => request('/api/models', { ...holder, ...browserOf(browser, server.url).headers })
  const mine = await Promise.all(Array.from({ length: 60 }, () => ask('greedy')))
  expect(mine.filter(({ status }) => status === 200)).toHaveLength(50)
  const refused = mine.find(({ status }) => status === 429)
  const { error } = ((await refused?.json()) ?? {}) as { error: { message: string; retryAfterSeconds: number } }
  expect(error).toMatchObject({ code: 'too_fast', retryAfterSeconds: Number(refused?.headers.get('retry-after')) })
  expect(error.message).toBe(`Too many requests in a short time: try again in ${error.retryAfterSeconds} seconds.`)
  expect((await ask('modest')).status).toBe(200)

  const connect = (browser: string) => server.connect(newId(), { accessToken, browser })
  for (let at = 0; at < 5; at++) await connect('greedy').ready()
  const sixth = connect('greedy')
  expect(await sixth.refused()).toBe('too_many_connections')
  await connect('modest').ready()
})

// Checked: if refused messages count, the second message is refused.
it('messages that were refused do not count, and a refusal says when to come back', async () => {
  const client = server.connect(newId(), { accessToken, browser: 'writer' })
  await client.snapshot()
  expect((await client.turn('hello')).reason).toBe('done')
  for (let at = 0; at < 3; at++) expect(await client.ask('message', '  ')).toMatchObject({ ok: false })
  expect((await client.turn('hello again')).reason).toBe('done')
  for (let at = 0; at < 3; at++) {
    const { error } = (await client.ask('message', 'one more')) as { error: Record<string, unknown> }
    expect(error).toMatchObject({
      code: 'too_fast',
      message: expect.stringMatching(/^Too many messages .*: try again in/)
    })
    expect(error.retryAfterSeconds).toBeGreaterThan(0)
  }
})

// Checked: if connections of everyone are counted by address, the one who has sessions is refused.
it('someone who makes up browsers uses up the connections for newcomers at an address, but none of those for people with sessions', async () => {
  const connect = (browser: string) => server.connect(newId(), { accessToken, browser })
  const known = connect('regular')
  await known.ready()
  known.close()
  const outcome = async (browser: string) => {
    const client = connect(browser)
    const gaveUp = () => 'nothing'
    return Promise.race([client.ready().then(() => 'ready', gaveUp), client.refused().catch(gaveUp)])
  }
  for (let at = 0; at < 11; at++) await Promise.all(Array.from({ length: 5 }, () => outcome(`made-up-${at}`)))
  expect(await outcome('a newcomer')).toBe('too_many_connections')
  expect(await outcome('regular')).toBe('ready')
})
