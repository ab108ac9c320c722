import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { child, isAlive, real } from '../../server/connections/connections.fixture.ts'
import { eventually } from '../support/eventually.ts'
import { type GatewayProcess, processesWith, spawnGateway, startGateway } from '../support/gateway-process.ts'
import { outsidePid } from '../support/outside-pid.ts'
import { textOf } from '../support/text-of.ts'

const running: GatewayProcess[] = []
const start: typeof startGateway = async (servers, options) => {
  const gateway = await startGateway(servers, options)
  running.push(gateway)
  return gateway
}
afterEach(async () => {
  await Promise.all(running.splice(0).map((gateway) => gateway.end()))
})
const data = (result: Record<string, unknown>) => result.structuredContent as Record<string, unknown>
const route = (result: Record<string, unknown>) => (result._meta as Record<string, unknown>)['mcp-orchestrator/route']

describe('the gateway over stdio', { timeout: 60_000 }, () => {
  it.each(['legacy', 'auto'] as const)(
    'serves four tools and runs the tools of servers through them (%s)',
    async (era) => {
      const gateway = await start({ everything: real('server-everything'), memory: real('server-memory') }, { era })
      expect(gateway.client.getProtocolEra()).toBe(era === 'auto' ? 'modern' : 'legacy')
      const { tools } = await gateway.client.listTools()
      expect(tools.map(({ name }) => name).sort()).toEqual([
        'execute',
        'explain_tool',
        'find_tool',
        'list_capabilities'
      ])

      const echo = await gateway.call('execute', { server: 'everything', tool: 'echo', params: { message: 'hello' } })
      expect(echo.content).toEqual([{ type: 'text', text: 'Echo: hello' }])
      expect(route(echo)).toEqual({ server: 'everything', tool: 'echo', confidence: 1, attempts: 1 })

      const found = await gateway.call('find_tool', { query: 'add two numbers together', limit: 1 })
      expect(data(found)).toMatchObject({ matches: [{ server: 'everything', tool: 'get-sum' }], pending: [] })
      expect(JSON.parse(textOf(found))).toEqual(data(found))

      const listed = data(await gateway.call('list_capabilities', {}))
      expect(listed).toMatchObject({ servers: [{ server: 'everything' }, { server: 'memory' }] })

      const explained = data(await gateway.call('explain_tool', { server: 'memory', tool: 'read_graph' }))
      expect(explained).toMatchObject({ server: 'memory', tool: 'read_graph', inputSchema: { type: 'object' } })
      expect(gateway.noise).toEqual([])
    }
  )

  it('asks for parameters that are missing or wrong, and runs nothing', async () => {
    const { call } = await start({ everything: real('server-everything') })
    const missing = data(await call('execute', { server: 'everything', tool: 'get-sum', params: { a: 1 } }))
    expect(missing).toMatchObject({ status: 'needs_params', tool: 'get-sum', problems: ['b is missing'] })
    expect(missing.inputSchema).toMatchObject({ required: ['a', 'b'] })
    const wrong = data(await call('execute', { server: 'everything', tool: 'get-sum', params: { a: 1, b: 'two' } }))
    expect(wrong).toMatchObject({ status: 'needs_params', problems: ['b must be number'] })
  })

  it('gives errors as results with a sentence', async () => {
    const { call } = await start({ everything: real('server-everything'), broken: child('crash-on-start') })
    const unknown = await call('execute', { server: 'nowhere', tool: 'x' })
    expect([unknown.isError, textOf(unknown)]).toEqual([true, expect.stringMatching(/no server "nowhere"/)])
    const broken = await call('execute', { server: 'broken', tool: 'x' })
    expect([broken.isError, textOf(broken)]).toEqual([true, expect.stringMatching(/"broken" did not start/)])
    const nothing = await call('execute', {})
    expect([nothing.isError, textOf(nothing)]).toEqual([true, expect.stringMatching(/Give "request"/)])
    const ignored = await call('list_capabilities', { server: 'everything' })
    expect([ignored.isError, textOf(ignored)]).toEqual([
      true,
      expect.stringMatching(/no argument "server".* category\./)
    ])
    expect(data(await call('execute', { tool: 'everything__echo' }))).toMatchObject({
      status: 'needs_choice',
      // On a busy machine, the broken server has not failed yet.
      reason: expect.stringMatching(
        /^No server has a tool "everything__echo"\.(?: Still starting: broken\.)? Nothing was run\.$/
      )
    })
    const failed = async () => data(await call('find_tool', { query: 'echo' })).failed
    await expect.poll(failed, { timeout: 30_000 }).toMatchObject([{ server: 'broken' }])
  })

  it('starts no child for the list of tools of 50 servers, and one for a call to one', async () => {
    const word = `fifty-${crypto.randomUUID()}`
    const names = Array.from({ length: 50 }, (_, i) => `s${i}`)
    const { call, client } = await start(Object.fromEntries(names.map((name) => [name, child('steady', [word])])))
    expect((await client.listTools()).tools).toHaveLength(4)
    expect(data(await call('list_capabilities', {})).hint).toContain('"find_tool" starts them')
    expect(processesWith(word)).toEqual([])
    expect(textOf(await call('execute', { server: 's7', tool: 'echo', params: { message: 'hi' } }))).toBe('hi')
    expect(processesWith(word)).toHaveLength(1)
  })

  it.each(['legacy', 'auto'] as const)(
    'gives 1,000 calls at once over 10 servers each its own answer (%s)',
    async (era) => {
      const names = Array.from({ length: 10 }, (_, i) => `s${i}`)
      const { call } = await start(Object.fromEntries(names.map((name) => [name, child('steady', [name])])), { era })
      const asked = Array.from({ length: 1000 }, (_, i) => ({ server: `s${i % 10}`, message: `m${i}` }))
      const answers = await Promise.all(
        asked.map(({ server, message }) => call('execute', { server, tool: 'echo', params: { message } }))
      )
      const got = answers.map((answer) => ({
        server: (route(answer) as { server: string }).server,
        message: textOf(answer)
      }))
      expect(got).toEqual(asked)
    }
  )

  it.each(['legacy', 'auto'] as const)('carries progress and cancellation through (%s)', async (era) => {
    const { client } = await start({ everything: real('server-everything'), steady: child('steady') }, { era })
    const seen: number[] = []
    const long = { server: 'everything', tool: 'trigger-long-running-operation', params: { duration: 0.3, steps: 3 } }
    await client.callTool({ name: 'execute', arguments: long }, { onprogress: ({ progress }) => seen.push(progress) })
    expect(seen).toEqual([1, 2, 3])
    const controller = new AbortController()
    const hang = { server: 'steady', tool: 'hang' }
    const hanging = client.callTool({ name: 'execute', arguments: hang }, { signal: controller.signal })
    controller.abort()
    await expect(hanging).rejects.toThrow()
    const echo = { server: 'steady', tool: 'echo', params: { message: 'on' } }
    expect(textOf({ ...(await client.callTool({ name: 'execute', arguments: echo })) })).toBe('on')
  })

  it('applies changes of mcp.json without touching other children', async () => {
    const { call, config } = await start({ a: child('steady') })
    const pid = textOf(await call('execute', { server: 'a', tool: 'pid' }))
    const servers = { ...JSON.parse(readFileSync(config, 'utf8')).mcpServers, b: child('steady') }
    writeFileSync(config, JSON.stringify({ mcpServers: servers }))
    const known = async () => JSON.stringify(data(await call('list_capabilities', {}))).includes('"b"')
    for (const end = Date.now() + 10_000; !(await known()); ) if (Date.now() > end) throw new Error('b never came')
    const other = outsidePid(textOf(await call('execute', { server: 'b', tool: 'pid' })))
    writeFileSync(config, '{ "mcpServers": { ')
    const problem = async () => data(await call('list_capabilities', {})).problem
    for (const end = Date.now() + 30_000; (await problem()) === undefined; )
      if (Date.now() > end) throw new Error('the broken file was never named')
    expect(await problem()).toMatch(
      /mcp\.json, line 1\b.*: .* The servers are those of the last file that could be used\./
    )
    expect(textOf(await call('execute', { server: 'a', tool: 'pid' }))).toBe(pid)
    writeFileSync(config, JSON.stringify({ mcpServers: { a: servers.a } }))
    await eventually('b to end', () => !isAlive(other))
    expect(textOf(await call('execute', { server: 'a', tool: 'pid' }))).toBe(pid)
  })

  it('uses an alternative when a server is gone, and says so', async () => {
    const file = join(process.env.TMPDIR ?? '/tmp', `failover-${crypto.randomUUID()}`)
    const { call } = await start({
      first: child('empty-after-restart', [`${file}-1`], { alternatives: ['nobody', 'second'], idleSeconds: 0.05 }),
      second: child('empty-after-restart', [`${file}-2`])
    })
    expect(route(await call('execute', { server: 'first', tool: 'there' }))).toMatchObject({ server: 'first' })
    await eventually('the first to stop', () => processesWith(`${file}-1`).length === 0)
    const answer = await call('execute', { server: 'first', tool: 'there' })
    expect(textOf(answer)).toBe('there')
    expect(route(answer)).toEqual({ server: 'second', tool: 'there', confidence: 1, attempts: 2 })
  })

  // Checked: if every rule allows, the call runs.
  it('applies the policy', async () => {
    const { call } = await start({ a: child('steady', ['/dev/null'], { approval: { 'write*': 'deny', env: 'ask' } }) })
    const denied = await call('execute', { server: 'a', tool: 'write', params: { message: 'x' } })
    expect([denied.isError, textOf(denied)]).toEqual([
      true,
      'The policy in mcp.json does not allow a/write: its "approval" has "write*": "deny".'
    ])
    expect(textOf(await call('execute', { server: 'a', tool: 'env' }))).toMatch(/needs approval/)
    expect(textOf(await call('execute', { server: 'a', tool: 'echo', params: { message: 'ok' } }))).toBe('ok')
  })

  it('keeps the rules of a server from another whose name begins like it', async () => {
    const { call } = await start({
      a: child('steady', ['/dev/null'], { approval: { '*': 'deny' } }),
      'a/b': child('steady', ['/dev/null'])
    })
    const echo = (server: string) => call('execute', { server, tool: 'echo', params: { message: 'ok' } })
    expect(textOf(await echo('a'))).toMatch(/does not allow a\/echo: its "approval" has "\*": "deny"/)
    expect(textOf(await echo('a/b'))).toBe('ok')
  })

  it.each(['SIGTERM', 'stdin'])('ends cleanly after %s while a server is still starting', async (how) => {
    const word = `mute-${crypto.randomUUID()}`
    const mute = { command: process.execPath, args: ['-e', 'setInterval(() => {}, 1000)', word] }
    const gateway = await startGateway({ mute })
    gateway.call('execute', { server: 'mute', tool: 'x' }).catch(() => {})
    await eventually('it to be started', () => processesWith(word).length > 0)
    if (how === 'stdin') gateway.process.stdin.end()
    else gateway.process.kill('SIGTERM')
    expect(await gateway.exited).toBe(0)
    expect(gateway.stderr()).toBe('')
  })

  it.each(['SIGKILL', 'SIGTERM', 'stdin'])('leaves no process behind after %s', async (how) => {
    const word = `stubborn-${crypto.randomUUID()}`
    const gateway = await startGateway({ a: child('stubborn', [word]), b: real('server-memory') })
    await gateway.call('execute', { server: 'a', tool: 'ready' })
    await gateway.call('execute', { server: 'b', tool: 'read_graph' })
    await eventually('all four to live', () => processesWith(word).length === 4)
    if (how === 'stdin') gateway.process.stdin.end()
    else gateway.process.kill(how as NodeJS.Signals)
    await gateway.exited
    await eventually('all of them to end', () => processesWith(word).length === 0, how === 'SIGKILL' ? 5000 : 100)
  })

  it.each([
    [
      'malformed',
      '{ "mcpServers": {\n  "a": { "command" "x" }\n} }',
      /mcp\.json, line 2, column 20: a colon is missing\.\n$/
    ],
    ['without servers', '{}', /mcp\.json, line 1: it needs an object "mcpServers"\.\n$/],
    ['missing', undefined, /mcp\.json can't be used: there is no such file\.\n$/]
  ])('refuses to start on a registry that is %s', async (_what, text, sentence) => {
    const dir = join(process.env.TMPDIR ?? '/tmp', `registry-${crypto.randomUUID()}`)
    const { mkdirSync } = await import('node:fs')
    mkdirSync(dir)
    const config = join(dir, 'mcp.json')
    if (text !== undefined) writeFileSync(config, text)
    const gateway = spawnGateway(['gateway', '--config', config], { DATA_DIR: dir })
    let said = ''
    let out = ''
    gateway.stderr.on('data', (chunk) => {
      said += chunk
    })
    gateway.stdout.on('data', (chunk) => {
      out += chunk
    })
    const code = await new Promise((done) => gateway.once('close', done))
    expect([code, out]).toEqual([2, ''])
    expect(said).toMatch(sentence)
  })
})
