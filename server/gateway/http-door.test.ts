import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterEach, describe, expect, it } from 'vitest'
import { silentLogger } from '../lib/logger.ts'
import { createPolicy } from '../tools/approval-policy.ts'
import { noAudit } from '../tools/audit/audit.fixture.ts'
import { child, openTestConnections, real, textOf } from '../tools/connections/connections.fixture.ts'
import { Gateway } from './gateway.ts'
import { openHttpDoor } from './http-door.ts'

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close()
})

async function serve(servers: Record<string, unknown>): Promise<URL> {
  const test = await openTestConnections(servers)
  const core = { ...test, policy: createPolicy([{ glob: '*', verdict: 'allow' }]), audit: noAudit, learn: () => {} }
  const gateway = new Gateway({ version: '1', logger: silentLogger, core: async () => core })
  const door = openHttpDoor(gateway, '1', silentLogger)
  const http = createServer((request, response) => void door.handle(request, response))
  await new Promise<void>((ready) => http.listen(0, '127.0.0.1', ready))
  closers.push(
    () => test.close(),
    () => door.close(),
    async () => http.closeAllConnections(),
    () => new Promise((done) => http.close(done))
  )
  return new URL(`http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`)
}

async function connect(url: URL, mode: 'legacy' | 'auto'): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } })
  await client.connect(new StreamableHTTPClientTransport(url))
  closers.push(() => client.close())
  return client
}

describe('the gateway over HTTP', { timeout: 30_000 }, () => {
  it.each(['legacy', 'auto'] as const)('serves the official client (%s)', async (mode) => {
    const url = await serve({ everything: real('server-everything') })
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

  it('cancels what its client has given up', async () => {
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
})
