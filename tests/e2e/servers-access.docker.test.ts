import { execFile } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, describe, expect, it } from 'vitest'
import type { PlanReply } from '../../contract/servers/servers.ts'
import { child } from '../../server/connections/connections.fixture.ts'
import { serve, stopServers } from '../support/serve.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

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

describe('adding a server', () => {
  afterAll(stopServers)

  // Checked: if any Host is accepted, the answer is 200 instead of 403.
  it('is refused under another host name than localhost, and to pages of other sites', async () => {
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

  it('is allowed with the access token, if there is one', async () => {
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

const APPROVE_OWN_CALL = join(import.meta.dirname, '../fixtures/approve-own-call.ts')
const MCP_HEADERS = { ...JSON_TYPE, accept: 'application/json, text/event-stream' }
/** Connects to the socket by polling, and prints the answer. */
const POLL = `sid=$(curl -s "$0" | sed 's/.*"sid":"\\([^"]*\\)".*/\\1/'); curl -s -d 40 "$0&sid=$sid"; curl -s "$0&sid=$sid"`
const runFile = promisify(execFile)

/** The words of a program that calls a tool over /mcp. */
function curl(url: string, params: object): string[] {
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'execute', arguments: params } }
  const headers = Object.entries(MCP_HEADERS).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
  return ['curl', '-s', ...headers, '-d', JSON.stringify(call), `${url}/mcp`]
}

const quoted = (words: string[]) => words.map((word) => `'${word}'`).join(' ')

describe('acting on an instance without a token', () => {
  afterAll(stopServers)

  // Checked: if the sender is not checked, the other server's secret is printed.
  it('is refused to servers that run here: they can not approve their own calls over WebSocket or polling, nor call tools at /mcp', async () => {
    const dataDir = temporaryFolder()
    const file = join(dataDir, 'mcp.json')
    const victim = child('shell', [], { env: { TOKEN: 'the-secret-of-another' }, approval: { '*': 'ask' } })
    const evil = child('shell', [], { approval: { '*': 'allow' } })
    writeFileSync(file, JSON.stringify({ mcpServers: { evil, victim } }))
    const { url } = await serve({ MCP_CONFIG: file }, { dataDir })
    const call = (words: string[]) => curl(url, { server: 'evil', tool: 'run', params: { command: quoted(words) } })
    const runInEvil = async (words: string[]) => {
      const [command = '', ...args] = call(words)
      return (await runFile(command, args)).stdout
    }
    for (const transport of ['websocket', 'polling']) {
      const said = await runInEvil([process.execPath, APPROVE_OWN_CALL, url, transport])
      expect(said).toContain('sent_by_server')
      expect(said).not.toContain('the-secret-of-another')
    }
    expect(await runInEvil(curl(url, { server: 'evil', tool: 'token', params: {} }))).toContain('sent_by_server')
    const post = ['curl', '-s', '-X', 'POST', '-H', 'content-type: application/json', '-d', '{}']
    expect(await runInEvil([...post, `${url}/api/sessions`])).toContain('sent_by_server')
    // The same from a program that is no server.
    const { stdout } = await runFile(process.execPath, [APPROVE_OWN_CALL, url, 'polling'])
    expect(stdout).toContain('the-secret-of-another')
  })

  // Checked: if other users are not told apart, the answer is 200, and the server can be added.
  it.runIf(process.getuid?.() === 0)('is refused to other users of this machine, until there is a token', async () => {
    const { url } = await serve({})
    const as = async (uid: string, words: string[]) =>
      (await runFile('setpriv', [`--reuid=${uid}`, '--clear-groups', ...words])).stdout
    const add = (to: string) => ['curl', '-s', '-H', 'content-type: application/json', '-d', body, `${to}/api/servers`]
    for (const words of [add(url), ['curl', '-s', `${url}/api/audit`], curl(url, { request: 'anything' })])
      expect(await as('12345', words)).toMatch(/sent_by_another_user.*set AUTH_TOKEN/)
    const connect = ['sh', '-c', POLL, `${url}/socket.io/?EIO=4&transport=polling&sessionId=x`]
    expect(await as('12345', connect)).toMatch(/44{.*sent_by_another_user/)
    expect(await as('0', connect)).toMatch(/40{/)
    expect(await as('12345', ['curl', '-s', `${url}/healthz`])).toContain('true')
    expect(await as('0', add(url))).toContain('"confirm"')
    const withToken = await serve({ AUTH_TOKEN: 'the-right-access-token' })
    const shown = ['-H', 'authorization: Bearer the-right-access-token']
    expect(await as('12345', ['curl', '-s', ...shown, `${withToken.url}/api/models`])).toContain('"models"')
  })
})
