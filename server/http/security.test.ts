import { connect } from 'node:net'
import Fastify from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { silentLogger } from '../lib/logger.ts'
import { ACCESS_COOKIE, OWNER_COOKIE } from '../lib/web/browser-proof.ts'
import { InstanceAccess } from '../sessions/access/instance-access.ts'
import { registerLogin } from './routes/login-route.ts'
import { registerOwner } from './routes/owner-route.ts'
import { registerSecurity } from './security.ts'

const owners = {
  ownerOf: async (_headers: object, proof: unknown) => (proof === 'shown' ? 'mine' : undefined),
  enter: async () => ({ cookie: 'fresh', isKnown: false }),
  isKnown: async () => true
}
const instance = { check: () => {}, checkLogin: () => {}, cookieFor: () => undefined, needsToken: false }
const server = Fastify()
beforeAll(async () => {
  await registerSecurity(server, { instance, owners, addressOf: () => 'here', requestsPerMinute: 600 })
  registerOwner(server, { instance, owners })
  registerLogin(server, { instance, addressOf: () => 'here' })
  server.get('/', async () => 'the page')
  server.post('/change', async () => 'changed')
  server.get('/cookies', async ({ headers }) => String(headers.cookie))
})
afterAll(() => server.close())

describe('what goes out with the page', () => {
  // Checked: if `frame-ancestors` allows our own site, the policy differs.
  it('lets nobody frame it, and runs no script but its own files', async () => {
    const { headers } = await server.inject('/')
    const policy = String(headers['content-security-policy'])
    expect(policy).toContain("frame-ancestors 'none'")
    expect(headers['x-frame-options']).toBe('SAMEORIGIN')
    expect(headers['x-content-type-options']).toBe('nosniff')
    expect(headers['referrer-policy']).toBe('no-referrer')
    for (const rule of ["script-src 'self'", "connect-src 'self'", "object-src 'none'", "base-uri 'none'"]) {
      expect(policy.split(';')).toContain(rule)
    }
    expect(policy).not.toMatch(/unsafe|\*|https?:/)
  })

  // Checked: without the comparison of `sec-fetch-site`, the answer is 200.
  it('is all that a page of another site can ask for, by an image, a script or a link', async () => {
    for (const site of ['cross-site', 'same-site']) {
      const get = (url: string) => server.inject({ url, headers: { host: 'localhost:3000', 'sec-fetch-site': site } })
      expect((await get('/cookies')).body).toContain('from another site')
      expect((await get('/')).statusCode).toBe(200)
    }
  })

  // Checked: with `SameSite=Lax`, the cookie differs.
  it('sets a cookie that no script can read and no other site sends, renewed for a year at each visit', async () => {
    const { cookies } = await server.inject({ method: 'POST', url: '/api/owner', headers: { host: 'localhost:3000' } })
    const cookie = { name: 'mcpo_owner_3000', value: 'fresh', path: '/', httpOnly: true, sameSite: 'Strict' }
    expect(cookies.at(-1)).toMatchObject({ ...cookie, maxAge: 365 * 86_400 })
    expect((await server.inject('/')).cookies).toEqual([])
  })

  // Checked: if the header is not changed, the planted cookies are still there.
  it('no route sees an owner cookie that was not proven', async () => {
    const planted = 'mcpo_owner=planted; other=1; mcpo_owner_80=planted'
    const seen = async (proof: string) =>
      (await server.inject({ url: '/cookies', headers: { cookie: planted, 'x-owner-proof': proof, host: 'here' } }))
        .body
    expect(await seen('')).toBe(' other=1')
    expect(await seen('shown')).toBe(' other=1;mcpo_owner=mine')
  })
})

// Checked: with the usual limit, a megabyte of every connection is kept until it is complete.
it('reads no more than a few kilobytes of a login, which anyone can send', async () => {
  const login = async (length: number) =>
    (await server.inject({ method: 'POST', url: '/api/login', payload: { token: 'x'.repeat(length) } })).statusCode
  expect(await login(9000)).toBe(413)
  expect(await login(4000)).not.toBe(413)
})

// Checked: if only the path counts, the whole body is read, and the answer is 404.
it('reads no body at an open path before the token was checked', async () => {
  const guarded = Fastify()
  const token = new InstanceAccess('an access token of some length', silentLogger)
  const options = { instance: token, addressOf: () => 'here' }
  await registerSecurity(guarded, { ...options, requestsPerMinute: 600, owners })
  registerLogin(guarded, options)
  guarded.get('/', async () => 'the page')
  const ask = async (method: 'GET' | 'HEAD' | 'POST' | 'PUT', url: string) =>
    JSON.stringify((await guarded.inject({ method, url, ...(method === 'POST' && { payload: { a: 1 } }) })).body)
  for (const url of ['/', '/?x', '/healthz', '/assets/x.js', '/favicon.ico', '/api/loginx', '/api/login/x'])
    expect(await ask('POST', url)).toContain('needs an access token')
  expect(await ask('PUT', '/api/login')).toContain('needs an access token')
  expect([await ask('GET', '/?x'), await ask('HEAD', '/')]).toEqual(['"the page"', '""'])
  expect(await ask('POST', '/api/login')).toContain('Wrong access token')
  await guarded.close()
})

describe('a cookie of an access token that was changed since', () => {
  it('is removed, so that a page that polls with it does not count as guessing', async () => {
    const guarded = Fastify()
    await registerSecurity(guarded, {
      instance: new InstanceAccess('an access token of some length', silentLogger),
      addressOf: () => 'here',
      requestsPerMinute: 600,
      owners
    })
    guarded.get('/api/approvals', async () => 'cards')
    const poll = (cookie: string) => guarded.inject({ url: '/api/approvals', headers: { cookie } })
    const [cookie] = (await poll(`${ACCESS_COOKIE}=old`)).cookies
    expect(cookie).toMatchObject({ name: ACCESS_COOKIE, value: '', path: '/', expires: new Date(0) })
    expect((await poll(`${OWNER_COOKIE}=mine`)).cookies).toEqual([])
    await guarded.close()
  })
})

describe('the figures for monitoring', () => {
  // Checked: if they count with the other requests of the address, the answer is 429.
  it('are available during a flood of other requests from the same address, up to their own limit', async () => {
    const flooded = Fastify()
    await registerSecurity(flooded, { instance, owners, addressOf: () => 'here', requestsPerMinute: 5 })
    flooded.get('/api/models', async () => 'models')
    flooded.get('/metrics', async () => 'figures')
    const ask = async (url: string) => (await flooded.inject(url)).body
    for (let at = 0; at < 5; at++) expect(await ask('/api/models')).toBe('models')
    expect(await ask('/api/models')).toContain('Too many requests')
    for (let at = 0; at < 5; at++) expect(await ask('/metrics')).toBe('figures')
    expect(await ask('/metrics')).toContain('Too many requests')
    await flooded.close()
  })
})

describe('what comes from a page of another site', () => {
  // Checked: if any Origin is accepted, the answer is 200 and the value is changed.
  it.each(['https://evil.example', 'null', 'http://localhost:1', 'http://localhost.evil.example'])(
    'changes nothing: %s',
    async (origin) => {
      const headers = { origin, host: 'localhost', cookie: `${OWNER_COOKIE}=mine` }
      const answer = await server.inject({ method: 'POST', url: '/change', headers })
      expect([answer.statusCode, answer.body]).not.toEqual([200, 'changed'])
      expect(answer.body).toContain('another site')
      const own = await server.inject({
        method: 'POST',
        url: '/change',
        headers: { ...headers, origin: 'http://localhost' }
      })
      expect(own.body).toBe('changed')
    }
  )
})

// Checked: without the limit, all of them are received, with or without a token.
it('keeps only so much of what one person sends at the same time, and others can still send', async () => {
  const room = Fastify()
  const known = {
    ...owners,
    ownerOf: async (headers: Record<string, unknown>) => headers['x-me'] as string | undefined
  }
  const isKnown = async (owner: string) => !owner.startsWith('made-up')
  const bodies = { personBytes: 1000, totalBytes: 2500 }
  const options = { instance, owners: { ...known, isKnown }, addressOf: () => 'here', requestsPerMinute: 600, bodies }
  await registerSecurity(room, options)
  room.setErrorHandler((error: { code?: string }, _request, reply) => reply.code(503).send(error.code))
  room.post('/change', { bodyLimit: 900 }, async ({ body }) => (body as { text: string }).text)
  const url = new URL(await room.listen({ host: '127.0.0.1', port: 0 }))
  const unfinished = (owner: string, length: string) => {
    const socket = connect(Number(url.port), url.hostname)
    socket.write(
      `POST /change HTTP/1.1\r\nhost: x\r\nx-me: ${owner}\r\ncontent-type: application/json\r\n${length}\r\n\r\n`
    )
    return socket
  }
  const send = async (owner: string, size = 700) => {
    const headers = { 'x-me': owner, 'content-type': 'application/json' }
    const body = JSON.stringify({ text: 'x'.repeat(size) })
    const answer = await fetch(`${url}change`, { method: 'POST', headers, body })
    return answer.ok ? 'received' : answer.text()
  }
  const slow = unfinished('greedy', 'content-length: 700')
  await expect.poll(() => send('greedy')).toBe('too_much_at_once')
  expect(await send('modest')).toBe('received')
  expect(await send('greedy', 10)).toBe('received')
  // Those that nobody knows count together, and a body of unknown size with the most that it may have.
  const chunked = unfinished('made-up-1', 'transfer-encoding: chunked')
  await expect.poll(() => send('made-up-2')).toBe('too_much_at_once')
  chunked.destroy()
  slow.destroy()
  await expect.poll(() => send('greedy')).toBe('received')
  await expect.poll(() => send('made-up-2')).toBe('received')
  await room.close()
})
