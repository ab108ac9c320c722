import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterEach, expect, it } from 'vitest'
import { textOf } from '../../../../tests/support/text-of.ts'
import { noAudit, openCall } from '../../../audit/audit.fixture.ts'
import type { Audit } from '../../../audit/audit.ts'
import { real } from '../../../connections/connections.fixture.ts'
import { serveExposed } from '../expose.fixture.ts'

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const LONG = { name: 'trigger-long-running-operation', arguments: { duration: 60, steps: 60 } }

/** A client that knows the content type of the answer to its last call. */
async function open(capabilities: object = {}, audit: Audit = noAudit) {
  const served = await serveExposed({ a: real('server-everything') }, 'a', { audit })
  closers.push(served.close)
  const types: string[] = []
  const client = new Client({ name: 'ann', version: '1' }, { capabilities })
  const transport = new StreamableHTTPClientTransport(served.url, {
    async fetch(url, init) {
      const response = await fetch(url, init)
      if (String(init?.body).includes('"tools/call"')) types.push(response.headers.get('content-type') ?? '')
      return response
    }
  })
  await client.connect(transport)
  closers.push(() => client.close())
  await client.listTools()
  return { ...served, client, transport, types }
}

// Seen failing: through the SDK, every answer is a stream of events.
it('are one JSON body, also for errors', async () => {
  const { client, types } = await open()
  expect(textOf(await client.callTool({ name: 'echo', arguments: { message: 'hi' } }))).toBe('Echo: hi')
  expect(JSON.stringify(await client.callTool({ name: 'get-sum', arguments: { a: 'x' } }))).toContain('"isError":true')
  await expect(client.callTool({ name: 'no-such-tool', arguments: {} })).rejects.toThrow('Unknown tool')
  expect(types.slice(0, 2)).toEqual(['application/json', 'application/json'])
})

it('become a stream if the server asks first, and the answer reaches the server', async () => {
  const { client, types } = await open({ elicitation: { form: {} } })
  client.setRequestHandler('elicitation/create', () => ({ action: 'decline' as const }))
  const answer = await client.callTool({ name: 'trigger-elicitation-request', arguments: {} })
  expect(JSON.stringify(answer)).toContain('declined')
  expect(types).toEqual(['text/event-stream'])
})

// The SDK does not know these calls, so it can't cancel them.
it.each(['cancels', 'leaves'] as const)('end at the server if the client %s', async (how) => {
  const { promise: ended, resolve } = Promise.withResolvers<string>()
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
  const audit: Audit = {
    ...noAudit,
    begin({ tool }) {
      if (tool === LONG.name) begin()
      return openCall(({ outcome }) => void (tool === LONG.name && resolve(outcome)))
    }
  }
  const { client, transport } = await open({}, audit)
  const until = new AbortController()
  const call = client.callTool(LONG, { signal: until.signal })
  call.catch(() => {})
  await begun
  if (how === 'cancels') until.abort()
  else await transport.close()
  // It was sent, so nobody knows what it did.
  expect(await ended).toBe('unknown')
})

it('are for the owner of the session alone', async () => {
  const { client, url } = await open()
  await client.callTool({ name: 'echo', arguments: { message: 'hi' } })
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2025-06-18',
      'mcp-session-id': crypto.randomUUID()
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 9, method: 'tools/call', params: { name: 'echo', arguments: {} } })
  })
  expect(response.status).toBe(404)
})
