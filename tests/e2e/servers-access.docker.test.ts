import { existsSync, readFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import type { PlanReply } from '../../contract/servers.ts'
import { serve, stopServers } from '../fixtures/serve.ts'

const SECRET = 'sk-in-no-log-1234567890'
const JSON_TYPE = { 'content-type': 'application/json' }
const body = JSON.stringify({ mcpServers: { x: { command: 'no-such-command', env: { API_KEY: SECRET } } } })

/** With any Host, which fetch would not let us set. */
function ask(port: number, options: { method: string; path: string; headers: Record<string, string>; body?: string }) {
  return new Promise<{ status: number; text: string }>((done, fail) => {
    const sent = request({ port, host: '127.0.0.1', ...options }, async (response) => {
      let text = ''
      for await (const chunk of response) text += chunk
      done({ status: response.statusCode ?? 0, text })
    })
    sent.on('error', fail)
    sent.end(options.body)
  })
}

describe('who may add a server', () => {
  afterAll(stopServers)

  // Checked with the defence off: any Host → 200 instead of 403.
  it('is nobody by another name than localhost, and no page of another site', async () => {
    const { port, dataDir, url, log } = await serve({ LOG_LEVEL: 'debug' })
    const post = (headers: Record<string, string>) =>
      ask(port, { method: 'POST', path: '/api/servers', headers: { ...JSON_TYPE, ...headers }, body })
    // DNS rebinding: the page's own name leads here, so its Origin fits its Host.
    const rebound = { host: `evil.example:${port}`, origin: `http://evil.example:${port}` }
    expect(await post(rebound)).toMatchObject({ status: 403, text: expect.stringContaining('unknown_host') })
    expect(await ask(port, { method: 'GET', path: '/api/servers', headers: rebound })).toMatchObject({ status: 403 })
    expect(await post({ origin: 'http://127.0.0.1:1' })).toMatchObject({ status: 403 })
    expect(await post({ origin: 'null' })).toMatchObject({ status: 403 })
    const form = await post({ 'content-type': 'text/plain' })
    expect(form).toMatchObject({ status: 400, text: expect.stringContaining('json_only') })

    const plan = (await (
      await fetch(`${url}/api/servers`, { method: 'POST', headers: JSON_TYPE, body })
    ).json()) as PlanReply
    expect(existsSync(join(dataDir, 'mcp.json'))).toBe(false)
    const confirmed = JSON.stringify({ ...JSON.parse(body), confirm: plan.confirm })
    const added = await ask(port, { method: 'POST', path: '/api/servers', headers: JSON_TYPE, body: confirmed })
    expect(added.status).toBe(201)
    expect(readFileSync(join(dataDir, 'mcp.json'), 'utf8')).toContain('no-such-command')
    const test = await ask(port, { method: 'POST', path: '/api/servers/x/test', headers: JSON_TYPE, body: '{}' })
    expect(test.text).toContain('there is no command')
    const list = await (await fetch(`${url}/api/servers/x`)).text()
    for (const said of [log(), test.text, list, added.text]) expect(said).not.toContain(SECRET)
  })

  it('is whoever has the access token, where there is one', async () => {
    const { port } = await serve({ AUTH_TOKEN: 'the-right-access-token', ADMIN_TOKEN: 'the-right-admin-token' })
    const post = (headers: Record<string, string>) =>
      ask(port, { method: 'POST', path: '/api/servers', headers: { ...JSON_TYPE, ...headers }, body })
    expect(await post({})).toMatchObject({ status: 401 })
    expect(await post({ authorization: 'Bearer wrong' })).toMatchObject({ status: 401 })
    expect(await ask(port, { method: 'GET', path: '/api/servers', headers: {} })).toMatchObject({ status: 401 })
    const member = { authorization: 'Bearer the-right-access-token' }
    expect(await post(member)).toMatchObject({ status: 403, text: expect.stringContaining('admin_required') })
    const admin = { 'x-admin-token': 'the-right-admin-token' }
    expect(await post(admin)).toMatchObject({ status: 401 })
    expect(await post({ ...member, ...admin })).toMatchObject({ status: 200 })
    // With a cookie that a browser would send along, a page of another site is still told by its Origin.
    const cookie = 'mcpo_access=the-right-access-token'
    expect(await post({ cookie, ...admin, origin: 'https://evil.example' })).toMatchObject({ status: 403 })
    expect(await post({ cookie, ...admin })).toMatchObject({ status: 200 })
  })
})
