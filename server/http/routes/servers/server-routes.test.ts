import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { PlanReply, ServerDetail, ServersReply, TestReply } from '../../../../contract/servers/servers.ts'
import { textOf } from '../../../../tests/support/text-of.ts'
import { child } from '../../../connections/connections.fixture.ts'
import { openServerRoutes as open } from './server-routes.fixture.ts'

const SECRET = 'sk-hidden-value-1234567890'

describe('the API of the servers', () => {
  it('adds what was shown and confirmed, into a file that only its owner reads; then tests, switches and removes it', async () => {
    const { ask, file, saved, chat, url } = await open()
    const body = { mcpServers: { steady: child('steady', [], { env: { API_KEY: SECRET, MODE: 'x' } }) } }
    const plan = await ask<PlanReply>('POST', '', body)
    expect(plan).toMatchObject({ status: 200, json: { problems: [], confirm: expect.any(String) } })
    const [planned] = plan.json.servers
    expect(planned?.target).toBe(`${process.execPath} ${String((body.mcpServers.steady.args as string[])[0])}`)
    expect(planned?.env).toEqual([
      { name: 'API_KEY', placeholder: null, value: null, looksSecret: true },
      { name: 'MODE', placeholder: null, value: 'x', looksSecret: false }
    ])
    expect(planned?.warnings.join()).toContain('API_KEY')
    expect(() => statSync(file)).toThrow()

    expect(await ask('POST', '', { ...body, confirm: 'something' })).toMatchObject({ status: 409 })
    const { confirm } = plan.json
    const other = { mcpServers: { steady: { command: 'rm', args: ['-rf', '/'] } }, confirm }
    expect(await ask('POST', '', other)).toMatchObject({ status: 409, json: { error: { code: 'confirmation_stale' } } })
    expect(() => statSync(file)).toThrow()
    expect(await ask('POST', '', { ...body, confirm })).toMatchObject({ status: 201, json: { added: ['steady'] } })
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(saved()).toEqual(body)
    // At once, without waiting for the watch.
    await chat.policy('steady', 'echo')
    expect((await ask<ServersReply>('GET', '')).json.servers).toMatchObject([
      { name: 'steady', health: 'unseen', state: 'stopped', tools: [], calls: 0, processes: 0, startedAt: null }
    ])

    expect((await ask<TestReply>('POST', '/steady/test', {})).json).toMatchObject({
      ok: true,
      tools: expect.any(Number),
      reason: null
    })
    const [row] = (await ask<ServersReply>('GET', '')).json.servers
    expect(row).toMatchObject({ health: 'ok', state: 'running', processes: 1, startedAt: expect.any(Number) })
    expect(row?.tools[0]).toEqual({ name: 'echo', verdict: 'ask', outside: 'allow', changed: false })
    const detail = await ask<ServerDetail>('GET', '/steady')
    expect(detail.json).toMatchObject({ name: 'steady', tools: expect.any(Array), log: '' })

    const seen = { 'if-none-match': String((await fetch(`${url}/api/servers`)).headers.get('etag')) }
    expect(await ask('GET', '', undefined, seen)).toMatchObject({ status: 304, text: '' })
    expect(await ask('POST', '/steady/disable', {})).toMatchObject({ status: 204 })
    expect(await ask('GET', '', undefined, seen)).toMatchObject({ status: 200 })
    expect((await ask<ServersReply>('GET', '')).json.servers).toMatchObject([{ health: 'off', enabled: false }])
    expect(await ask('POST', '/steady/test', {})).toMatchObject({
      status: 409,
      json: { error: { code: 'server_off' } }
    })
    expect(await ask('POST', '/steady/enable', {})).toMatchObject({ status: 204 })
    expect(saved()).toEqual(body)
    expect(await ask('DELETE', '/steady')).toMatchObject({ status: 204 })
    expect(saved()).toEqual({ mcpServers: {} })
    expect(await ask('DELETE', '/steady')).toMatchObject({ status: 404 })
    for (const { text } of [plan, detail]) expect(text).not.toContain(SECRET)
  })

  it('reads a pasted text as strictly as the registry, by line, and never replaces what is there', async () => {
    const { ask, saved } = await open({ taken: child('steady') })
    const text = `{
      // as some client has it
      "mcpServers": {
        "taken": { "command": "other" },
        "odd": { "command": 7 },
        "typed": { "command": "x", "cmd": "y" },
        "__proto__": { "command": "evil" },
        "free": { "command": "run me", "args": ["a b", "\${secret:X}"] },
        "far": { "url": "https://example.org/mcp", "headers": { "Authorization": "\${secret:T}" } },
        "loose": { "command": "node", "approval": { "*": "allow" }, "env": { "NODE_OPTIONS": "--require=/tmp/x" } },
      },
    }`
    const { json, status } = await ask<PlanReply>('POST', '', { text })
    expect(status).toBe(200)
    expect(json.servers.map(({ name }) => name)).toEqual(['typed', '__proto__', 'far', 'loose'])
    expect(json.problems.map(({ server, line, fatal }) => [server, line, fatal])).toEqual([
      ['taken', 4, true],
      ['odd', 5, true],
      ['typed', 6, false],
      ['free', 8, true]
    ])
    expect(json.servers[2]?.headers).toEqual([
      { name: 'Authorization', placeholder: `\${secret:T}`, value: null, looksSecret: false }
    ])
    expect(json.servers[3]?.warnings.join()).toMatch(/without asking you: \*.*NODE_OPTIONS/)
    await ask('POST', '', { text, confirm: json.confirm })
    expect(Object.keys(saved().mcpServers)).toEqual(['taken', 'typed', '__proto__', 'far', 'loose'])
    expect(saved().other).toBe('kept')
    const inner = await ask<PlanReply>('POST', '', { text: '{\n"bare": {\n"command": "x" } }' })
    expect(inner.json.servers.map(({ target }) => target)).toEqual(['x'])
    const broken = await ask('POST', '', { text: `{"mcpServers":\n{"a": {"env": {"K": "${SECRET}"} } "b"}}` })
    expect(broken).toMatchObject({ status: 400, text: expect.stringContaining('line 2') })
    expect(broken.text).not.toContain(SECRET)
    for (const wrong of [{}, { text, mcpServers: {} }, [], 'null', { text: 7 }, { mcpServers: [] }])
      expect(await ask('POST', '', wrong)).toMatchObject({ status: 400 })
  })

  it('shows broken entries and a broken file, and removes what can not be read', async () => {
    const { ask, file, gateway } = await open({ bad: { command: 3 }, fine: child('crash-on-start') })
    expect((await ask<ServersReply>('GET', '')).json).toMatchObject({
      problems: [{ server: 'bad', line: 1, fatal: true, reason: expect.stringContaining('"command"') }],
      servers: [{ name: 'fine' }]
    })
    expect((await ask<TestReply>('POST', '/fine/test', {})).json).toMatchObject({
      ok: false,
      reason: expect.stringMatching(/did not start.*no configuration/)
    })
    expect((await ask<ServersReply>('GET', '')).json.servers).toMatchObject([
      { health: 'failing', lastError: { message: expect.stringContaining('did not start') } }
    ])
    expect((await ask<ServerDetail>('GET', '/fine')).json.log).toContain('no configuration')
    expect(await ask('DELETE', '/bad')).toMatchObject({ status: 204 })
    expect((await ask<ServersReply>('GET', '')).json.problems).toEqual([])
    writeFileSync(file, '{"mcpServers": {"a": }')
    await gateway.reload()
    expect((await ask<ServersReply>('GET', '')).json).toMatchObject({
      problem: expect.stringContaining('line 1'),
      servers: [{ name: 'fine' }]
    })
    expect(await ask('POST', '/fine/disable', {})).toMatchObject({ status: 400 })
  })

  it('flags a definition that is not the accepted one', async () => {
    const { ask, keyValues } = await open({ steady: child('steady') })
    await keyValues.set('tool-definitions', JSON.stringify(['steady', 'echo']), 'what it was')
    await ask('POST', '/steady/test', {})
    const { tools } = (await ask<ServersReply>('GET', '')).json.servers[0] ?? { tools: [] }
    expect(tools.filter(({ changed }) => changed).map(({ name }) => name)).toEqual(['echo'])
  })

  // Checked: if any Origin and type are accepted, the server is added.
  it('accepts no change that another site could have sent', async () => {
    const { ask } = await open({ steady: child('steady') })
    const body = JSON.stringify({ mcpServers: { x: { command: 'x' } } })
    const evil = { origin: 'https://evil.example' }
    for (const [method, path] of [
      ['POST', ''],
      ['POST', '/steady/test'],
      ['POST', '/steady/disable'],
      ['DELETE', '/steady']
    ] as const) {
      expect(await ask(method, path, method === 'POST' ? body : undefined, evil)).toMatchObject({ status: 403 })
      expect(await ask(method, path, undefined, { origin: 'null' })).toMatchObject({ status: 403 })
    }
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'])
      for (const path of ['', '/steady/test', '/steady/disable'])
        expect((await ask('POST', path, body, { 'content-type': type })).status).toBeGreaterThanOrEqual(400)
    expect(await ask('POST', '/steady/disable')).toMatchObject({ status: 400, json: { error: { code: 'json_only' } } })
    expect((await ask<ServersReply>('GET', '')).json.servers).toMatchObject([{ enabled: true, state: 'stopped' }])
  })

  it('applies changes that come at once one after the other', async () => {
    const { ask, saved } = await open({ a: child('steady'), b: child('steady'), c: child('steady') })
    const names = ['a', 'b', 'c']
    await Promise.all(names.map((name) => ask('POST', `/${name}/disable`, {})))
    for (const name of names) expect(saved().mcpServers[name].enabled).toBe(false)
  })

  it.each([
    ['an empty file', ''],
    ['a JSON file', '{ "OLD": "kept", "owners": { "local": { "A": "b" } } }'],
    ['a file of lines', '# mine\nOLD=kept\n']
  ])('moves secrets into %s, and the server gets them from there', async (_name, before) => {
    const { ask, saved, secretsFile, gateway } = await open(undefined, before)
    const env = { API_KEY: SECRET, PASSWORD: `it's "odd" #1`, MODE: 'plain' }
    const body = { mcpServers: { 'my server': child('steady', [], { env }) }, moveSecrets: true }
    const plan = await ask<PlanReply>('POST', '', body)
    expect(plan.text).not.toContain(SECRET)
    expect(plan.json.canMoveSecrets).toBe(true)
    const placeholder = `\${secret:MY_SERVER_API_KEY}`
    expect(plan.json.servers[0]?.env[0]).toMatchObject({ placeholder, looksSecret: false })
    const { confirm } = plan.json
    expect(await ask('POST', '', { ...body, moveSecrets: false, confirm })).toMatchObject({ status: 409 })
    expect(await ask('POST', '', { ...body, confirm })).toMatchObject({ status: 201 })
    expect(JSON.stringify(saved())).not.toContain(SECRET)
    expect(saved().mcpServers['my server'].env.MODE).toBe('plain')
    expect(statSync(secretsFile).mode & 0o777).toBe(0o600)
    if (before) expect(readFileSync(secretsFile, 'utf8')).toMatch(/OLD.*kept/)
    const { connections } = await gateway.core()
    const caller = { owner: 'local', door: 'http' } as const
    const { signal } = new AbortController()
    const { result } = await connections.call('my server', {
      caller,
      tool: 'env',
      args: {},
      mustNotRepeat: false,
      signal
    })
    expect(JSON.parse(textOf(result))).toMatchObject(env)
    // Another secret of the same name is not overwritten.
    await ask('DELETE', '/my%20server')
    const other = {
      mcpServers: { 'my server': child('steady', [], { env: { API_KEY: 'sk-other' } }) },
      moveSecrets: true
    }
    const again = (await ask<PlanReply>('POST', '', other)).json
    const refused = await ask('POST', '', { ...other, confirm: again.confirm })
    expect(refused).toMatchObject({ status: 409, text: expect.stringContaining('secret_exists') })
  })

  it('takes names that need escaping', async () => {
    const name = 'a/b ?#%<script>'
    const { ask } = await open({ [name]: child('steady') })
    const path = `/${encodeURIComponent(name)}`
    expect((await ask<ServerDetail>('GET', path)).json.name).toBe(name)
    expect(await ask('DELETE', path)).toMatchObject({ status: 204 })
  })
})

// Checked: with Fastify's default, the limit is 0, which means for ever.
it('waits minutes, not for ever, for the rest of a request', async () => {
  const { raw } = await open()
  expect(raw.requestTimeout).toBe(300_000)
  expect(raw.headersTimeout).toBe(60_000)
})
