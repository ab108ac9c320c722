import { Client, ProtocolError, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterEach, describe, expect, it } from 'vitest'
import { child } from '../../server/connections/connections.fixture.ts'
import { serveExposed } from '../../server/gateway/expose/expose.fixture.ts'
import { startGateway } from '../support/gateway-process.ts'
import { textOf } from '../support/text-of.ts'
import type { Door, Era } from './exposed-client.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close()
})

const OWN = 'MCP Orchestrator asks for your approval.'
const MATRIX: [Door, Era, 'legacy' | 'modern'][] = [
  ['stdio', 'legacy', 'legacy'],
  ['stdio', 'legacy', 'modern'],
  ['stdio', 'auto', 'legacy'],
  ['stdio', 'auto', 'modern'],
  ['http', 'legacy', 'legacy'],
  ['http', 'auto', 'modern']
]

type Shown = Record<string, unknown>

async function open(door: Door, era: Era, childEra: string) {
  const shown: Shown[] = []
  const capabilities = { elicitation: { form: {}, url: {} }, sampling: {} }
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: era }, capabilities })
  client.setRequestHandler('elicitation/create', ({ params }) => {
    shown.push({ ...params })
    return { action: 'accept', content: { answer: 'Approve' } }
  })
  client.setRequestHandler('sampling/createMessage', ({ params }) => {
    shown.push({ ...params })
    return { role: 'assistant', model: 'x', content: { type: 'text', text: 'ok' } }
  })
  const servers = { 'sly "one"': child('imitator', [childEra], { approval: { form: 'ask' } }) }
  if (door === 'stdio') {
    const gateway = await startGateway(servers, { args: ['--expose', 'all'], client })
    closers.push(() => gateway.end())
  } else {
    const served = await serveExposed(servers, undefined, { policy: (_, tool) => (tool === 'form' ? 'ask' : 'allow') })
    closers.push(() => served.close())
    await client.connect(new StreamableHTTPClientTransport(served.url))
    closers.push(() => client.close())
  }
  const { tools } = await client.listTools()
  const call = (name: string) =>
    client.callTool({ name: tools.find((tool) => tool.name.includes(`__${name}`))?.name ?? '', arguments: {} })
  return { shown, call }
}

/** Every line of the server's is quoted, and the first and the last say who asks, by the name in mcp.json. */
function expectNamed(text: unknown): void {
  const lines = String(text).split(/[\n\r\u2028\u2029\u0085\v\f]/)
  expect(lines[0]).toBe('Server "sly \\"one\\"" asks:')
  expect(lines.at(-1)).toMatch(/^This was asked by the server "sly \\"one\\"", not by MCP Orchestrator/)
  expect(lines.slice(1, -1).length).toBeGreaterThan(2)
  for (const line of lines.slice(1, -1)) expect(line).toMatch(/^> /)
  expect(String(text)).not.toMatch(/[\u202e\u2028]/)
}

describe('a question of a server', { timeout: 60_000 }, () => {
  // Checked: if questions pass unchanged, the first line is the gateway's own.
  it.each(MATRIX)('can not be taken for the gateway’s own (%s, client %s, server %s)', async (door, era, childEra) => {
    const { shown, call } = await open(door, era, childEra)
    expect(textOf({ ...(await call('form')) })).toContain('Approve')
    const [own, asked] = shown
    expect(String(own?.message)).toMatch(new RegExp(`^${OWN}\n`))
    expect(own?.message).not.toContain('asks:')
    expectNamed(asked?.message)
    const { properties = {} } = (asked?.requestedSchema ?? {}) as { properties?: Record<string, Shown> }
    const { answer } = properties
    // The schema of the answer is unchanged. Its title and description stay on one line.
    expect(answer).toMatchObject({ type: 'string', enum: ['Approve', 'Reject'] })
    expect(`${answer?.title}${answer?.description}`).not.toContain('\n')

    await call('address')
    expect(shown.at(-1)).toMatchObject({ mode: 'url', url: 'https://example.com/login' })
    expectNamed(shown.at(-1)?.message)

    await call('text')
    expectNamed(shown.at(-1)?.systemPrompt)
    expect(shown.at(-1)).toMatchObject({ messages: [{ content: { text: 'hello' } }] })

    const error = await call('error').catch((reason) => reason)
    expect(error).toBeInstanceOf(ProtocolError)
    // Only the older revisions know such an error.
    if (era === 'legacy' && childEra === 'legacy') expectNamed(error.data?.elicitations?.[0]?.message)
    else expect(error.data).toBeUndefined()
  })
})
