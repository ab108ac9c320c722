import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { duplexPair } from 'node:stream'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import type { PlanReply, ServerDetail, ServersReply, TestReply } from '../../../../contract/servers/servers.ts'
import { textOf } from '../../../../tests/support/text-of.ts'
import { child } from '../../../connections/connections.fixture.ts'
import { parseHostPattern } from '../../../lib/web/host-pattern.ts'
import { createEgressProxy } from '../../../sandbox/egress/egress-proxy.ts'
import { openServerRoutes } from './server-routes.fixture.ts'

const AUTH_TOKEN = 'the token that everyone here has'
const ADMIN_TOKEN = 'the token of the one who adds servers'
const member = { authorization: `Bearer ${AUTH_TOKEN}` }
const admin = { ...member, 'x-admin-token': ADMIN_TOKEN }
const wrong = { ...member, 'x-admin-token': 'not the token of anyone here' }
const added = { mcpServers: { evil: { command: 'sh', args: ['-c', 'true'] } } }
const entry = child('steady', ['--in', '/srv/private'], { cwd: '/tmp', env: { API_KEY: 'sk-plain-in-the-file' } })

const runFile = promisify(execFile)
const HIDE_SENDER = join(import.meta.dirname, '../../../../tests/fixtures/hide-sender.py')
const JSON_TYPE = 'content-type: application/json'

/** With a server that runs what it is told to. */
async function openEvil() {
  const opened = await openServerRoutes({ evil: child('shell'), victim: child('steady') })
  const { connections } = await opened.gateway.core()
  const caller = { owner: 'local', door: 'http' } as const
  const { signal } = new AbortController()
  const run = async (command: string) => {
    const call = { caller, tool: 'run', args: { command }, mustNotRepeat: true, signal }
    return textOf((await connections.call('evil', call)).result)
  }
  return { ...opened, run }
}

const CHANGES = [
  ['POST', '', added],
  ['POST', '', { ...added, confirm: 'x' }],
  ['POST', '/steady/disable', {}],
  ['POST', '/steady/enable', {}],
  ['DELETE', '/steady', undefined]
] as const

/** Also for administrators only. Tried with fewer tokens, because wrong ones are counted. */
const MORE = [
  ['GET', '/steady/entry', undefined],
  ['GET', '/steady/log', undefined],
  ['GET', '/steady/offers', undefined],
  ['POST', '/steady/resource', { uri: 'x:y' }],
  ['POST', '/steady/prompt', { name: 'x', arguments: {} }],
  ['PUT', '/steady', { version: 'x', name: 'steady', entry: {} }],
  ['PUT', '/steady/rules', { tool: 'echo', before: {}, after: {} }]
] as const

describe('changing servers', () => {
  // Checked: if every token holder is an administrator, the answers are 200 and 204.
  it('is refused over HTTP if there is an access token but no admin token', async () => {
    const { ask, saved } = await openServerRoutes({ steady: entry }, '', { AUTH_TOKEN })
    for (const [method, path, body] of [...CHANGES, ...MORE])
      expect(await ask(method, path, body, admin)).toMatchObject({
        status: 403,
        json: { error: { code: 'admin_cli_only', message: expect.stringContaining('ADMIN_TOKEN') } }
      })
    expect(Object.keys(saved().mcpServers)).toEqual(['steady'])
    expect((await ask<ServersReply>('GET', '', undefined, member)).json.admin).toBe('cli_only')
  })

  // Checked: if every token holder is an administrator, the answers are 200 and 204.
  it('needs the admin token; other users see no command, path, variable or log', async () => {
    const { ask, saved, file } = await openServerRoutes({ steady: entry }, '', { AUTH_TOKEN, ADMIN_TOKEN })
    for (const [method, path, body] of CHANGES)
      for (const headers of [member, wrong, { ...member, 'x-admin-token': AUTH_TOKEN }])
        expect(await ask(method, path, body, headers)).toMatchObject({
          status: 403,
          json: { error: { code: 'admin_required' } }
        })
    for (const [method, path, body] of MORE)
      expect(await ask(method, path, body, member)).toMatchObject({ status: 403 })
    expect(await ask('POST', '/steady/test', {}, member)).toMatchObject({ status: 200, json: { ok: true } })
    const seen = [
      await ask<ServersReply>('GET', '', undefined, member),
      await ask<ServerDetail>('GET', '/steady', undefined, member)
    ]
    expect(seen[0]?.json).toMatchObject({
      admin: 'token_needed',
      file: null,
      servers: [{ name: 'steady', target: null }]
    })
    expect(seen[1]?.json).toMatchObject({
      target: null,
      cwd: null,
      env: [],
      headers: [],
      log: null,
      tools: expect.any(Array)
    })
    for (const word of [file, '/srv/private', 'steady.ts', 'API_KEY', '"/tmp"'])
      expect(seen.map(({ text }) => text).join('\n')).not.toContain(word)

    const list = await ask<ServersReply>('GET', '', undefined, admin)
    expect(list.json).toMatchObject({
      admin: 'allowed',
      file,
      servers: [{ target: expect.stringContaining('/srv/private') }]
    })
    const { confirm } = (await ask<PlanReply>('POST', '', added, admin)).json
    expect(await ask('POST', '', { ...added, confirm }, admin)).toMatchObject({ status: 201 })
    expect(await ask('POST', '/evil/disable', {}, admin)).toMatchObject({ status: 204 })
    expect(await ask('DELETE', '/evil', undefined, admin)).toMatchObject({ status: 204 })
    expect(Object.keys(saved().mcpServers)).toEqual(['steady'])
  })

  // Checked: if the reason is passed on, a member reads the end of the server's log.
  it('tells only administrators why a server does not start, also in answers to calls', async () => {
    const says = { command: 'sh', args: ['-c', 'echo db admin@10.1.2.3 password hunter2abc >&2; exit 3'] }
    const { ask, gateway } = await openServerRoutes({ says }, '', { AUTH_TOKEN, ADMIN_TOKEN })
    const tried = await ask<TestReply>('POST', '/says/test', {}, member)
    expect(tried.json).toMatchObject({ ok: false, reason: expect.stringContaining('servers test says') })
    const context = { caller: { owner: 'local', door: 'http' as const }, signal: new AbortController().signal }
    const called = await gateway.gateway.call('execute', { server: 'says', tool: 'x' }, context)
    const listed = await ask('GET', '', undefined, member)
    const seen = [tried, listed, await ask('GET', '/says', undefined, member), called]
    expect(JSON.stringify(seen)).not.toContain('hunter2')
    const shown = await ask<TestReply>('POST', '/says/test', {}, admin)
    expect(shown.json.reason).toContain('hunter2')
    expect((await ask('GET', '', undefined, admin)).text).toContain('hunter2')
  })

  // Checked: if they are not counted, the answer is 403 for ever.
  it('counts wrong admin tokens, and still accepts the right one', async () => {
    const { ask } = await openServerRoutes({ steady: entry }, '', { ADMIN_TOKEN })
    const guess = (at: number) => ask('GET', '', undefined, { 'x-admin-token': `guess number ${at} of many` })
    for (let at = 0; at < 20; at++) expect((await guess(at)).status).toBe(403)
    expect(await guess(20)).toMatchObject({ status: 429, json: { error: { code: 'too_fast' } } })
    const change = { 'x-admin-token': ADMIN_TOKEN }
    expect(await ask('POST', '/steady/disable', {}, change)).toMatchObject({ status: 204 })
    expect(await ask('GET', '')).toMatchObject({ status: 200, json: { admin: 'token_needed' } })
  })

  // Checked: if any hash is accepted, the answer is 204.
  it('accepts a changed entry that uses secrets only for an administrator, and exactly as shown', async () => {
    const secrets = { env: { TOKEN: `\${secret:T}` } }
    const opened = await openServerRoutes({ steady: child('steady', [], secrets) }, 'T=hush-hush', { ADMIN_TOKEN })
    const { ask, file, gateway } = opened
    const shows = { 'x-admin-token': ADMIN_TOKEN }
    const test = async () => (await ask<TestReply>('POST', '/steady/test', {}, shows)).json
    const change = async (words: string[]) => {
      writeFileSync(file, JSON.stringify({ mcpServers: { steady: child('steady', words, secrets) } }))
      await gateway.reload()
    }
    expect(await test()).toMatchObject({ ok: true })
    await change(['--other'])
    expect((await ask<ServersReply>('GET', '', undefined, shows)).json.servers).toMatchObject([{ isWaiting: true }])
    expect(await test()).toMatchObject({ ok: false, reason: expect.stringContaining('gets no secrets') })
    const { hash } = (await ask<ServerDetail>('GET', '/steady', undefined, shows)).json
    expect(await ask('POST', '/steady/accept', { hash })).toMatchObject({ status: 403 })
    await change(['--yet-another'])
    expect(await ask('POST', '/steady/accept', { hash }, shows)).toMatchObject({ status: 409 })
    const now = (await ask<ServerDetail>('GET', '/steady', undefined, shows)).json
    expect(await ask('POST', '/steady/accept', { hash: now.hash }, shows)).toMatchObject({ status: 204 })
    expect(await test()).toMatchObject({ ok: true })
  })

  // Checked: if the sender is not checked, the answer is 200.
  it('is refused to servers that run here, even without a token and however they hide', async () => {
    const { ask, url, saved, run } = await openEvil()
    const init = '{ method: "POST", headers: { "content-type": "application/json" }, body: process.argv[1] }'
    const send = `fetch("${url}/api/servers", ${init}).then((r) => r.text()).then(console.log)`
    const post = `${process.execPath} -e '${send}' '${JSON.stringify(added).replaceAll("'", '"')}'`
    const hidden = ['env -i', 'setsid -w env -i', 'unshare -Ur env -i', 'setsid -w unshare -Urm env -i']
    // A server that runs as root can't make one more namespace to hide in.
    for (const way of ['', ...hidden]) expect(await run(`${way} ${post} 2>&1`)).toMatch(/sent_by_server|unshare failed/)
    expect(Object.keys(saved().mcpServers)).toEqual(['evil', 'victim'])
    // The same from a process that is none of them.
    expect(await ask('POST', '', added)).toMatchObject({ status: 200 })
    const { stdout } = await runFile('curl', ['-s', '-H', JSON_TYPE, '-d', JSON.stringify(added), `${url}/api/servers`])
    expect(stdout).toContain('"confirm"')
  })

  // Checked: if connections of the proxy are not remembered, the answer is 204 and the victim is disabled.
  it('is refused to a server in a container, whose requests come from this process', async () => {
    const { url, saved } = await openServerRoutes({ victim: child('steady') }, '')
    const proxy = await createEgressProxy({
      patterns: [parseHostPattern('127.0.0.1:*')].filter((one) => one !== undefined),
      onDenied: () => {}
    })
    const [near, far] = duplexPair()
    proxy.accept(near)
    const head = `POST ${url}/api/servers/victim/disable HTTP/1.1\r\nhost: x\r\nconnection: close`
    far.write(`${head}\r\n${JSON_TYPE}\r\ncontent-length: 2\r\n\r\n{}`)
    expect(await text(far)).toContain('sent_by_server')
    expect(JSON.stringify(saved().mcpServers.victim)).not.toContain('disabled')
    proxy.close()
  })

  // Checked: if an unknown sender is let through, the answer is 204 and the victim is disabled.
  it('is refused to programs that can not be distinguished from a server, without the admin token', async () => {
    const { url, ask, saved, run } = await openEvil()
    const { port } = new URL(url)
    const hide = (way: string, path: string, method = 'POST') =>
      run(`python3 ${HIDE_SENDER} ${way} ${port} ${path} ${method} 2>&1`)
    const disable = '/api/servers/victim/disable'
    expect(await hide('plain', disable)).toContain('sent_by_server')
    expect(await hide('flight', disable)).toMatch(/sender_unknown|sent_by_server/)
    expect(await hide('orphan', disable)).toMatch(/sender_unknown|sent_by_server/)
    // It takes the socket back to read the answer.
    for (const path of ['/api/approvals', '/api/runs', '/api/audit', '/api/servers/victim', '/api/servers/victim/log'])
      expect(await hide('flight', path, 'GET')).toMatch(/sender_unknown|sent_by_server/)
    for (const path of ['/mcp', '/api/sessions'])
      expect(await hide('orphan', path)).toMatch(/sender_unknown|sent_by_server/)
    for (const path of [
      disable.replace('servers', '%73ervers'),
      `${url}${disable}`,
      '/api/approvals/x',
      '/api/runs/x/cancel'
    ])
      expect(await hide('plain', path)).toContain('sent_by_server')
    for (const way of ['close', 'reset']) await hide(way, disable)
    expect(await ask('GET', '')).toMatchObject({ status: 200 })
    expect(JSON.stringify(saved().mcpServers.victim)).not.toContain('disabled')
    // Outside of every server, in a user namespace of its own, as some browsers are.
    const outside = ['-Ur', 'python3', HIDE_SENDER, 'plain', port, disable]
    expect((await runFile('unshare', outside)).stdout).toMatch(/sender_unknown.*ADMIN_TOKEN/)
    const withToken = await openServerRoutes({ victim: child('steady') }, '', { ADMIN_TOKEN })
    const words = ['-Ur', 'curl', '-s', '-o', '/dev/null', '-w', '%{http_code}', '-H', JSON_TYPE, '-d', '{}']
    const address = `${withToken.url}${disable}`
    expect((await runFile('unshare', [...words, address])).stdout).toBe('403')
    expect((await runFile('unshare', [...words, '-H', `x-admin-token: ${ADMIN_TOKEN}`, address])).stdout).toBe('204')
  })

  it('is allowed to everyone on this machine if no token is set', async () => {
    const { ask, file } = await openServerRoutes({ steady: entry })
    expect((await ask<ServersReply>('GET', '')).json).toMatchObject({ admin: 'allowed', file })
    expect(await ask('POST', '/steady/disable', {})).toMatchObject({ status: 204 })
  })
})

// Seen before: the answer spoke of servers, and a path that is none was forbidden.
it('says what needs the admin token, and that a path with a NUL is malformed', async () => {
  const { url } = await openServerRoutes({}, '', { AUTH_TOKEN, ADMIN_TOKEN })
  const headers = { ...member, 'content-type': 'application/json' }
  const key = await fetch(`${url}/api/providers/openai/key`, { method: 'PUT', body: '{"apiKey":"x"}', headers })
  expect([key.status, await key.text()]).toEqual([403, expect.stringContaining('Changing keys needs the admin token')])
  const path = await fetch(`${url}/files/%00x`, { headers: member })
  expect([path.status, await path.json()]).toMatchObject([400, { error: { code: 'invalid_request' } }])
})
