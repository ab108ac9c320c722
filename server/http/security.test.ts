import Fastify from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { OWNER_COOKIE } from '../lib/browser-proof.ts'
import { registerSecurity } from './security.ts'

const server = Fastify()
beforeAll(async () => {
  await registerSecurity(server, {
    instance: { check: () => {}, checkLogin: () => {} },
    addressOf: () => 'here',
    newSecret: () => 'fresh'
  })
  server.get('/', async () => 'the page')
  server.post('/change', async () => 'changed')
})
afterAll(() => server.close())

describe('what goes out with the page', () => {
  // Checked with the defence off: frame-ancestors of the own site → another policy.
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

  // Checked with the defence off: SameSite=Lax → another cookie.
  it('is a cookie that no script reads and no other site sends', async () => {
    const [cookie] = (await server.inject('/')).cookies
    expect(cookie).toMatchObject({ name: OWNER_COOKIE, value: 'fresh', httpOnly: true, sameSite: 'Strict' })
  })
})

describe('what comes from a page of another site', () => {
  // Checked with the defence off: any Origin → 200, “changed”.
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
