import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, connect as connectSocket } from 'node:net'
import { join } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterEach, describe, expect, it } from 'vitest'
import { temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { textOf } from '../../../tests/support/text-of.ts'
import { noAudit } from '../../audit/audit.fixture.ts'
import type { Audit } from '../../audit/audit.ts'
import { child, openTestConnections, real } from '../../connections/connections.fixture.ts'
import { silentLogger } from '../../lib/logger.ts'
import { createPolicy } from '../../policy/approval-policy.ts'
import { Gateway } from '../execute/gateway.ts'
import { serveDoor } from './http-door.fixture.ts'
import { openHttpDoor } from './http-door.ts'

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close()
})

/** Without `parsed` the SDK answers all. */
async function serve(
  servers: Record<string, unknown>,
  parsed = true,
  credentials?: string,
  audit: Audit = noAudit
): Promise<URL> {
  const test = await openTestConnections(servers, credentials === undefined ? {} : { credentials })
  const core = { ...test, policy: createPolicy([{ glob: '*', rule: 'allow' }]), audit, learn: () => {} }
  const gateway = new Gateway({ version: '1', logger: silentLogger, core: async () => core })
  const door = openHttpDoor(gateway, '1', silentLogger, (cookies) => cookies ?? 'local')
  const { url, close } = await serveDoor(door, { parsed })
  closers.push(() => test.close(), close)
  return url
}

async function connect(url: URL, mode: 'legacy' | 'auto', headers: Record<string, string> = {}): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } })
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }))
  closers.push(() => client.close())
  return client
}

describe('the gateway over HTTP', () => {
  it.each(['legacy', 'auto'] as const)('uses the credentials of the owner of each request (%s)', async (mode) => {
    const credentials = join(temporaryFolder(), 'credentials')
    const stored = { KEY: 'common', owners: { anna: { KEY: 'of-anna' }, ben: { KEY: 'of-ben' } } }
    writeFileSync(credentials, JSON.stringify(stored), { mode: 0o600 })
    const url = await serve({ a: child('who', [], { env: { TOKEN: `\${secret:KEY}` } }) }, true, credentials)
    const who = async (headers: Record<string, string>) => {
      const client = await connect(url, mode, headers)
      const answer = await client.callTool({ name: 'execute', arguments: { server: 'a', tool: 'who' } })
      return JSON.parse(textOf({ ...answer })).TOKEN
    }
    const asked = [who({ cookie: 'anna' }), who({}), who({ cookie: 'ben' }), who({ cookie: 'cleo' })]
    expect(await Promise.all(asked)).toEqual(['of-anna', 'common', 'of-ben', 'common'])
  })

  // Seen before: the inbox and the audit log had no name for such a client.
  it('names a client as it names itself, cleaned and cut, or else after its User-Agent', async () => {
    const clients: (string | undefined)[] = []
    const begin: Audit['begin'] = (call) => {
      clients.push(call.caller.client)
      return noAudit.begin(call)
    }
    const url = await serve({ a: child('who') }, true, undefined, { ...noAudit, begin })
    for (const mode of ['legacy', 'auto'] as const) {
      const client = await connect(url, mode, { 'user-agent': 'editor/1.2' })
      await client.callTool({ name: 'execute', arguments: { server: 'a', tool: 'who' } })
    }
    expect(clients.splice(0)).toEqual(['test/1', 'test/1'])
    const call = async (session: Record<string, string>) => {
      const types = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
      const headers = { ...types, 'mcp-protocol-version': '2025-11-25', 'user-agent': 'editor/1.2', ...session }
      const params = { name: 'execute', arguments: { server: 'a', tool: 'who' } }
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
      expect((await fetch(url, { method: 'POST', headers, body })).status).toBe(200)
    }
    const hostile = `x.${Buffer.from(`a\n\u0000b${'c'.repeat(300)}/1`).toString('base64url')}`
    for (const session of [undefined, 'x', `y.${'z'.repeat(5000)}`, hostile])
      await call(session === undefined ? {} : { 'mcp-session-id': session })
    expect(clients).toEqual(['editor/1.2', 'editor/1.2', 'editor/1.2', `a b${'c'.repeat(97)}`])
  })

  it.each([
    ['legacy', true],
    ['legacy', false],
    ['auto', true],
    ['auto', false]
  ] as const)('serves the official client (%s, parsed: %s)', async (mode, parsed) => {
    const url = await serve({ everything: real('server-everything') }, parsed)
    const client = await connect(url, mode)
    expect(client.getProtocolEra()).toBe(mode === 'auto' ? 'modern' : 'legacy')
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('execute')
    const echo = { server: 'everything', tool: 'echo', params: { message: 'over http' } }
    expect(textOf({ ...(await client.callTool({ name: 'execute', arguments: echo })) })).toBe('Echo: over http')
    const seen: number[] = []
    const long = { server: 'everything', tool: 'trigger-long-running-operation', params: { duration: 0.2, steps: 2 } }
    await client.callTool({ name: 'execute', arguments: long }, { onprogress: ({ progress }) => seen.push(progress) })
    expect(seen).toEqual([1, 2])
  })

  it('carries the trace context of the HTTP request on to the child, unless the message has its own', async () => {
    const url = await serve({ steady: child('steady') })
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    const ask = async (_meta: Record<string, unknown>, header: string) => {
      const params = { name: 'execute', arguments: { server: 'steady', tool: 'meta' }, _meta }
      const answer = await fetch(url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          'mcp-protocol-version': '2025-06-18',
          traceparent: header
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
      })
      return answer.text()
    }
    expect(await ask({}, traceparent)).toContain(traceparent)
    expect(await ask({}, 'nonsense')).not.toContain('nonsense')
    const own = '00-11111111111111111111111111111111-2222222222222222-01'
    expect(await ask({ traceparent: own }, traceparent)).toContain(own)
  })

  it('cancels a call that its client has given up', async () => {
    const url = await serve({ steady: child('steady') })
    const client = await connect(url, 'auto')
    const controller = new AbortController()
    const hanging = client.callTool(
      { name: 'execute', arguments: { server: 'steady', tool: 'hang' } },
      { signal: controller.signal }
    )
    controller.abort()
    await expect(hanging).rejects.toThrow()
    const echo = { server: 'steady', tool: 'echo', params: { message: 'on' } }
    expect(textOf({ ...(await client.callTool({ name: 'execute', arguments: echo })) })).toBe('on')
  })

  it('reaches a remote server as it reaches a local one', async () => {
    const remote = await serve({ steady: child('steady') })
    const client = await connect(
      await serve({ far: { url: remote.href }, gone: { url: 'http://127.0.0.1:1/mcp' } }),
      'auto'
    )
    const inner = { server: 'steady', tool: 'echo', params: { message: 'far away' } }
    const call = { server: 'far', tool: 'execute', params: inner }
    expect(textOf({ ...(await client.callTool({ name: 'execute', arguments: call })) })).toBe('far away')
    const gone = await client.callTool({ name: 'execute', arguments: { server: 'gone', tool: 'x' } })
    expect([gone.isError, textOf({ ...gone })]).toEqual([true, expect.stringContaining('"gone"')])
  })

  it.each<[string, Record<string, string>, Record<string, unknown>, number]>([
    ['an older call', { 'mcp-protocol-version': '2025-11-25' }, {}, 200],
    ['a newer call', modernHeaders(), envelope(), 200],
    ['a newer call of a client that can be asked', modernHeaders(), envelope({ elicitation: {} }), 200],
    ['a newer call under an older header', { 'mcp-protocol-version': '2025-11-25' }, envelope(), 400],
    ['a newer header without an envelope', modernHeaders(), {}, 400],
    ['a name that is not the one in the header', { ...modernHeaders(), 'mcp-name': 'find_tool' }, envelope(), 400],
    ['an unknown revision', { 'mcp-protocol-version': '1999-01-01' }, {}, 400],
    ['a client that takes no JSON', { 'mcp-protocol-version': '2025-11-25', accept: 'text/event-stream' }, {}, 406],
    ['a body that calls itself text', { 'mcp-protocol-version': '2025-11-25', 'content-type': 'text/plain' }, {}, 415]
  ])('answers %s as the SDK would', async (_what, headers, meta, status) => {
    const servers = { steady: child('steady') }
    const params = {
      name: 'execute',
      arguments: { server: 'steady', tool: 'echo', params: { message: 'x' } },
      _meta: meta
    }
    const ask = async (parsed: boolean) => {
      const answer = await fetch(await serve(servers, parsed), {
        method: 'POST',
        headers: { accept: 'application/json, text/event-stream', 'content-type': 'application/json', ...headers },
        body: JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/call', params })
      })
      const text = await answer.text()
      return [answer.status, JSON.parse(text.replace(/^event: message\ndata: /, ''))]
    }
    const [short, long] = [await ask(true), await ask(false)]
    expect(short).toEqual(long)
    expect(short[0]).toBe(status)
  })
})

function modernHeaders(): Record<string, string> {
  return { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'execute' }
}

function envelope(clientCapabilities = {}): Record<string, unknown> {
  const prefix = 'io.modelcontextprotocol/'
  const clientInfo = { name: 'test', version: '1' }
  return {
    [`${prefix}protocolVersion`]: '2026-07-28',
    [`${prefix}clientInfo`]: clientInfo,
    [`${prefix}clientCapabilities`]: clientCapabilities
  }
}

// Checked: if the gateway follows the client's pace, the client is never disconnected.
it('disconnects a client that does not read its answer', async () => {
  const chunk = new Uint8Array(1024 * 1024)
  const { promise: left, resolve: leave } = Promise.withResolvers<void>()
  let given = 0
  const flood = new ReadableStream({
    pull(controller) {
      given++
      controller.enqueue(chunk)
    },
    cancel: leave
  })
  const exposed = { fastCall: () => undefined, fetch: async () => new Response(flood), close: async () => {} }
  const gateway = new Gateway({ version: '1', logger: silentLogger, core: () => Promise.reject(new Error('unused')) })
  const door = openHttpDoor(gateway, '1', silentLogger, undefined, exposed)
  const http = createServer((request, response) => void door.handle(request, response))
  await new Promise<void>((ready) => http.listen(0, '127.0.0.1', ready))
  const client = connectSocket((http.address() as AddressInfo).port, '127.0.0.1')
  closers.push(
    () => new Promise((done) => http.close(done)),
    async () => client.destroy()
  )
  client.on('error', () => {}).write('GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await left
  expect(given).toBeLessThan(100)
})
