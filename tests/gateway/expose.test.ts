import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { child, real } from '../../server/connections/connections.fixture.ts'
import { eventually } from '../support/eventually.ts'
import { processesWith, spawnGateway } from '../support/gateway-process.ts'
import { textOf } from '../support/text-of.ts'
import { type Door, type Era, type Opened, openExposed } from './exposed-client.ts'

const opened: Opened[] = []
const open: typeof openExposed = async (...args) => {
  const one = await openExposed(...args)
  opened.push(one)
  return one
}
afterEach(async () => {
  await Promise.all(opened.splice(0).map((one) => one.close()))
})

const MATRIX: [Door, Era][] = [
  ['stdio', 'legacy'],
  ['stdio', 'auto'],
  ['http', 'legacy'],
  ['http', 'auto']
]
const everything = { everything: real('server-everything') }
const text = (result: object) => textOf({ ...result })

describe.each(MATRIX)('server-everything passed through over %s, client %s', { timeout: 60_000 }, (door, era) => {
  let shared: Opened
  beforeAll(async () => {
    shared = await openExposed(door, era, everything, { only: 'everything' })
  })
  afterAll(() => shared.close())

  it('has its own tools, those for this kind of client included', async () => {
    const { client } = shared
    expect(client.getProtocolEra()).toBe(era === 'auto' ? 'modern' : 'legacy')
    const names = (await client.listTools()).tools.map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(['echo', 'trigger-elicitation-request', 'trigger-sampling-request']))
    expect(names).not.toContain('execute')
    expect(text(await client.callTool({ name: 'echo', arguments: { message: 'hi' } }))).toBe('Echo: hi')
    await expect(client.callTool({ name: 'execute', arguments: {} })).rejects.toThrow(/Unknown tool/)
  })

  it('asks the client: elicitation, sampling, roots', async () => {
    const { client, asked } = shared
    const elicited = await client.callTool({ name: 'trigger-elicitation-request', arguments: {} })
    expect(JSON.stringify(elicited)).toContain('someone')
    const sampling = { name: 'trigger-sampling-request', arguments: { prompt: 'hello', maxTokens: 10 } }
    expect(JSON.stringify(await client.callTool(sampling))).toContain('said someone')
    expect(JSON.stringify(await client.callTool({ name: 'get-roots-list', arguments: {} }))).toContain('/home/someone')
    expect(asked).toEqual(expect.arrayContaining(['elicitation/create', 'sampling/createMessage', 'roots/list']))
  })

  it('has resources, prompts and completion', async () => {
    const { client } = shared
    const { resources } = await client.listResources()
    const [first] = resources
    expect(resources.length).toBeGreaterThan(1)
    expect((await client.readResource({ uri: first?.uri ?? '' })).contents[0]).toMatchObject({ uri: first?.uri })
    expect((await client.listResourceTemplates()).resourceTemplates.length).toBeGreaterThan(0)
    const dynamic = await client.readResource({ uri: 'demo://resource/dynamic/text/1' })
    expect(JSON.stringify(dynamic)).toContain('demo://resource/dynamic/text/1')
    await expect(client.readResource({ uri: 'demo://nowhere' })).rejects.toMatchObject({ code: expect.any(Number) })
    expect((await client.listPrompts()).prompts.map(({ name }) => name)).toContain('completable-prompt')
    const args = { department: 'Sales', name: 'Eve' }
    expect(JSON.stringify(await client.getPrompt({ name: 'completable-prompt', arguments: args }))).toContain('Eve')
    const completed = await client.complete({
      ref: { type: 'ref/prompt', name: 'completable-prompt' },
      argument: { name: 'department', value: 'S' }
    })
    expect(completed.completion.values).toEqual(['Sales', 'Support'])
  })

  it('carries progress and cancellation', async () => {
    const { client } = await open(door, era, { ...everything, steady: child('steady') })
    const long = { name: 'everything__trigger-long-running-operation', arguments: { duration: 0.2, steps: 2 } }
    const progressOf = async () => {
      const seen: number[] = []
      // A modern client adds a report of its own, without a total, for each round of questions.
      await client.callTool(long, { onprogress: ({ progress, total }) => total !== undefined && seen.push(progress) })
      return seen
    }
    // The server asks for the client's roots soon after its start: of the reports during that question, only the newest is passed on.
    await expect.poll(progressOf).toEqual([1, 2])
    const controller = new AbortController()
    const hanging = client.callTool({ name: 'steady__hang', arguments: {} }, { signal: controller.signal })
    controller.abort()
    await expect(hanging).rejects.toThrow()
    expect(text(await client.callTool({ name: 'steady__echo', arguments: { message: 'on' } }))).toBe('on')
  })
})

describe.each(MATRIX)('news over %s, client %s', { timeout: 60_000 }, (door, era) => {
  it.each(['legacy', 'modern'])(
    'of a %s server: log messages from the level that was asked for, changed lists, resources that were subscribed to',
    async (childEra) => {
      const server = child('conformance-server', [childEra])
      const opened = await open(door, era, { c: server }, { only: 'c', canAnswer: false })
      await expectMessages(opened, era)
      const { client, heard } = opened
      await client.listTools()
      const uri = 'test://watched-resource'
      if (era === 'legacy') await client.subscribeResource({ uri })
      else await client.listen({ resourceSubscriptions: [uri] })
      for (const kind of ['tool', 'prompt', 'resource']) {
        await client.callTool({ name: `test_trigger_${kind}_change`, arguments: {} })
        await eventually(`news of ${kind}s`, () => heard.some(({ method }) => method === `${kind}s`))
      }
      await client.callTool({ name: 'test_trigger_resource_update', arguments: {} })
      await eventually('an update', () => heard.some(({ method }) => method === 'notifications/resources/updated'))
      expect(heard.findLast(({ method }) => method.endsWith('updated'))?.params).toMatchObject({ uri })
      expect((await client.listTools()).tools.map(({ name }) => name)).toContain('grown_0')
    }
  )
})

async function expectMessages({ client, heard }: Opened, era: Era): Promise<void> {
  const messages = () =>
    heard.filter(({ method }) => method === 'notifications/message').map(({ params }) => params.data)
  const call = (level: string) => {
    const envelope = era === 'legacy' ? {} : { _meta: { 'io.modelcontextprotocol/logLevel': level } }
    return client.callTool({ name: 'test_tool_with_logging', arguments: {}, ...envelope })
  }
  if (era === 'legacy') await client.setLoggingLevel('error')
  await call('error')
  expect(messages()).toEqual([])
  if (era === 'legacy') await client.setLoggingLevel('info')
  await call('info')
  await eventually('messages', () => messages().length === 3)
  expect(messages()[0]).toBe('Tool execution started')
}

describe('pass-through', { timeout: 60_000 }, () => {
  it.each(['legacy', 'auto'] as const)('asks the very client whose call it was, and no other (%s)', async (era) => {
    const { another } = await open('http', era, everything, { only: 'everything' })
    const clients = await Promise.all(['ann', 'bob', 'cleo'].map(async (name) => ({ name, ...(await another(name)) })))
    await Promise.all(
      clients.map(async ({ name, client }) => {
        const [elicited, sampled] = await Promise.all([
          client.callTool({ name: 'trigger-elicitation-request', arguments: {} }),
          client.callTool({ name: 'trigger-sampling-request', arguments: { prompt: 'x', maxTokens: 5 } })
        ])
        expect(JSON.stringify(elicited)).toContain(name)
        expect(JSON.stringify(sampled)).toContain(`said ${name}`)
      })
    )
    for (const { asked } of clients) {
      expect(asked.filter((method) => method !== 'roots/list').toSorted()).toEqual([
        'elicitation/create',
        'sampling/createMessage'
      ])
    }
  })

  it('lists the tools of 50 known servers without starting one, by their prefixed names', async () => {
    const word = `exposed-${crypto.randomUUID()}`
    const names = Array.from({ length: 50 }, (_, at) => `s${at}`)
    const servers = Object.fromEntries(names.map((name) => [name, child('steady', [word], { idleSeconds: 0.01 })]))
    const { client } = await open('http', 'auto', servers)
    const listed = async () => (await client.listTools(undefined, { cacheMode: 'refresh' })).tools
    const end = Date.now() + 50_000
    while (!(await listed()).some(({ name }) => name === 's49__echo')) if (Date.now() > end) throw new Error('not seen')
    await eventually('all to stop', () => processesWith(word).length === 0)
    expect((await listed()).filter(({ name }) => name.endsWith('__echo'))).toHaveLength(50)
    expect(processesWith(word)).toEqual([])
    expect(text(await client.callTool({ name: 's7__echo', arguments: { message: 'hi' } }))).toBe('hi')
    expect(processesWith(word).length).toBeLessThanOrEqual(1)
  })

  it('merges resources and prompts of all, and keeps two of the same name apart', async () => {
    const { client } = await open('stdio', 'auto', { a: child('conformance-server'), b: child('conformance-server') })
    const { resources } = await client.listResources()
    const uris = resources.filter(({ name }) => name === 'static-text').map(({ uri }) => uri)
    expect(uris).toHaveLength(2)
    for (const uri of uris) expect((await client.readResource({ uri })).contents[0]).toMatchObject({ uri })
    const { prompts } = await client.listPrompts()
    expect(prompts.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['a__test_simple_prompt', 'b__test_simple_prompt'])
    )
    expect(JSON.stringify(await client.getPrompt({ name: 'b__test_simple_prompt' }))).toContain('simple prompt')
  })

  it('keeps to the policy', async () => {
    const server = child('steady', ['/dev/null'], { approval: { 'write*': 'deny' } })
    const { client } = await open('stdio', 'legacy', { a: server }, { only: 'a' })
    const denied = await client.callTool({ name: 'write', arguments: { message: 'x' } })
    expect([denied.isError, text(denied)]).toEqual([
      true,
      'The policy in mcp.json does not allow a/write: its "approval" has "write*": "deny".'
    ])
  })

  it.each(['legacy', 'auto'] as const)("asks the client's human where the policy says so (%s)", async (era) => {
    const server = child('steady', [], { approval: { pid: 'ask' } })
    const { client, asked } = await open('stdio', era, { a: server }, { only: 'a' })
    const result = await client.callTool({ name: 'pid', arguments: {} })
    expect([result.isError ?? false, text(result)]).toEqual([false, expect.stringMatching(/^(pid:\[\d+\] )?\d+/)])
    expect(asked).toEqual(['elicitation/create'])
  })

  it.each(['legacy', 'auto'] as const)('asks them once for a call that goes on in rounds (%s)', async (era) => {
    const server = child('conformance-server', ['modern'], { approval: { '*': 'ask' } })
    const { client, asked } = await open('stdio', era, { a: server }, { only: 'a' })
    const call = { name: 'test_input_required_result_multi_round', arguments: {} }
    expect(text(await client.callTool(call))).toMatch(/^someone likes/)
    // One of the gateway's, two of the server's.
    expect(asked).toHaveLength(3)
    await client.callTool(call)
    expect(asked).toHaveLength(6)
  })

  it('does not start for a server that is not there', async () => {
    const process = spawnGateway(['gateway', '--expose', 'nobody'], {
      DATA_DIR: '/nonexistent',
      XDG_CONFIG_HOME: '/nonexistent'
    })
    let said = ''
    process.stderr.on('data', (chunk) => {
      said += chunk
    })
    expect(await new Promise((done) => process.once('close', done))).toBe(2)
    expect(said).toMatch(
      /^mcp-orchestrator: GATEWAY_EXPOSE \(--expose\) must be "all" or a server in .*; it is "nobody", which is not there\.\n$/
    )
  })
})
