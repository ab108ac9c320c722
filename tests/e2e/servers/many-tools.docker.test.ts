import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { child } from '../../../server/connections/connections.fixture.ts'
import { packageRoot } from '../../../server/lib/files/package-root.ts'
import type { RecordedRequest, ScriptedReply } from '../../fixtures/model-servers/model-reply.ts'
import { startOpenAiServer } from '../../fixtures/model-servers/openai-server.ts'
import type { ScriptedServer } from '../../fixtures/model-servers/scripted-server.ts'
import type { Client } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { type Served, serve, stopServers } from '../../support/serve.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { textOf } from '../../support/text-of.ts'

const LIMIT = 12
const MODEL = 'openai-compatible/vendor/llama-test'
const SUM = { server: 'everything', tool: 'get-sum', params: { a: 2, b: 40 } }

interface Wire {
  tools: { function: { name: string } }[]
  messages: { role: string; content?: unknown; tool_calls?: { function: { name: string } }[] }[]
}

/** The vendor's model makes the calls that the last message asks for, and tells what they returned. */
function behave({ body }: RecordedRequest): ScriptedReply {
  const { messages } = body as Wire
  const asked = messages.findLastIndex(({ role }) => role === 'user')
  const steps = messages.slice(asked).filter(({ role }) => role === 'tool').length
  const text = JSON.stringify(messages[asked]?.content)
  const call = (name: string, args: object) => ({
    toolCalls: [{ id: `call_${messages.length}`, name, args: JSON.stringify(args) }]
  })
  if (text.includes('#hidden')) {
    if (steps === 0) return call('find_tool', { query: 'add two numbers and return the sum' })
    if (steps === 1) return call('execute', SUM)
  }
  if (text.includes('#failover') && steps === 0)
    return call('execute', { server: 'first', tool: 'shout', params: { text: 'hey' } })
  return { text: 'All is well.' }
}

let vendor: ScriptedServer
let server: Served
let environment: Record<string, string>
const dataDir = temporaryFolder()
const elsewhere = temporaryFolder()
const definitions = join(elsewhere, 'first.json')

const real = (name: string, ...args: string[]) => ({
  command: process.execPath,
  args: [join(packageRoot(), `node_modules/@modelcontextprotocol/server-${name}/dist/index.js`), ...args]
})

/** A child with one tool, which stops as soon as it is not needed. */
function shouting(file: string, more: Record<string, unknown>): Record<string, unknown> {
  const shout = {
    name: 'shout',
    description: 'Shouts a text.',
    inputSchema: { type: 'object', properties: { text: {} } }
  }
  writeFileSync(file, JSON.stringify([shout]))
  return child('shaped', [file, join(elsewhere, 'calls')], { idleSeconds: 0.1, ...more })
}

beforeAll(async () => {
  vendor = await startOpenAiServer({
    otherwise: behave,
    models: [{ id: 'vendor/llama-test', object: 'model', created: 1 }]
  })
  const file = join(dataDir, 'mcp.json')
  const mcpServers = {
    everything: real('everything'),
    filesystem: real('filesystem', elsewhere),
    memory: real('memory'),
    first: shouting(definitions, { alternatives: ['second'], approval: { shout: 'allow' } }),
    second: shouting(join(elsewhere, 'second.json'), {})
  }
  writeFileSync(file, JSON.stringify({ mcpServers }))
  environment = { MCP_CONFIG: file, MAX_CHAT_TOOLS: String(LIMIT), OPENAI_COMPATIBLE_BASE_URL: `${vendor.url}/v1` }
  server = await serve({ ...environment, LLM_PROVIDER: 'openai-compatible' }, { dataDir })
  await listAll()
})
afterAll(async () => {
  await stopServers()
  await vendor.close()
})

const wire = () => vendor.requests.map(({ body }) => body as Wire)
const names = ({ tools }: Wire) => tools.map((tool) => tool.function.name)
const last = () => names(wire().at(-1) as Wire)

async function open(sessionId: string): Promise<Client> {
  const client = server.connect(sessionId, { model: MODEL })
  await client.ready()
  return client
}

/** Every server is listed once, so that all sessions know the same tools: on a busy machine, some miss the first turn. */
async function listAll(): Promise<void> {
  const client = await open('many-first')
  const isListed = async () => {
    await client.turn('hello')
    const [system] = wire().at(-1)?.messages ?? []
    const told = JSON.stringify(system)
    return ['everything', 'filesystem', 'memory', 'first', 'second'].every((name) => told.includes(name))
  }
  await eventually('all servers are listed', isListed, 120_000)
}

describe('a chat with more tools than its model is offered', () => {
  it('finds a hidden tool, and the card, the rule and the log are about that tool', async () => {
    const client = await open('many-hidden')
    const from = client.seen.length
    await client.ask('message', 'Please do it. #hidden')
    const card = await client.wait('tool:approval_required', ({ name }) => name === 'get-sum', { from })
    expect(card).toMatchObject({ server: 'everything', args: SUM.params })
    const [searched] = client.all('tool:result').slice(-1)
    expect(textOf(searched ?? {})).toContain('"inputSchema"')
    await client.ask('tool:approval', { callId: card.callId, approved: true, hash: card.hash })
    const result = await client.wait('tool:result', ({ callId }) => callId === card.callId)
    expect(textOf(result)).toContain('42')
    await client.wait('turn:end', undefined, { from })
    expect(last()).not.toContain('everything__get-sum')
    // The vendor gets back what its model said.
    const said = wire()
      .at(-1)
      ?.messages.flatMap(({ tool_calls = [] }) => tool_calls.map((call) => call.function.name))
    expect(said).toEqual(['find_tool', 'execute'])
  })

  it('offers the tools that fit the message; the list only grows, even across a crash', async () => {
    const client = await open('many-grows')
    await client.turn('hello')
    const before = last()
    await client.turn('Create entities and relations in the knowledge graph of the memory.')
    const grown = last()
    expect(grown.slice(0, before.length)).toEqual(before)
    expect(grown).toContain('memory__create_entities')
    await server.kill9()
    server = await serve({ ...environment, LLM_PROVIDER: 'openai-compatible' }, { dataDir })
    const again = server.connect('many-grows', { model: MODEL, token: (await client.ready()).token })
    await again.ready()
    await again.turn('Read a text file of the file system and search files.')
    expect(last().slice(0, grown.length)).toEqual(grown)
  })

  it('runs a call elsewhere if its server does not start, after the person has approved that', async () => {
    const client = await open('many-failover')
    rmSync(definitions)
    await eventually('the first server is gone', async () => {
      const from = client.seen.length
      await client.ask('message', '#failover')
      const news = await Promise.race([
        client.wait('tool:approval_required', ({ server: at }) => at === 'second', { from }),
        client.wait('turn:end', undefined, { from })
      ])
      if (news.server !== 'second') return false
      expect(news.again).toMatchObject({ failedOn: ['first'] })
      await client.ask('tool:approval', { callId: news.callId, approved: true, hash: news.hash })
      const result = await client.wait('tool:result', ({ callId }) => callId === news.callId, { from })
      expect(textOf(result)).toContain('ran shout')
      await client.wait('turn:end', undefined, { from })
      return true
    })
  })

  it('never sends more tools than the limit', () => {
    expect(wire().length).toBeGreaterThan(5)
    for (const request of wire()) expect(names(request).length).toBeLessThanOrEqual(LIMIT)
    expect(last()).toEqual(expect.arrayContaining(['read_file', 'execute_command', 'find_tool', 'execute']))
  })
})
