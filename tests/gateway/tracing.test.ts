import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { child } from '../../server/connections/connections.fixture.ts'
import { eventually } from '../support/eventually.ts'
import { startGateway } from '../support/gateway-process.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { textOf } from '../support/text-of.ts'

interface Span {
  name: string
  traceId: string
  spanId: string
  parentSpanId?: string
}

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close()
})

/** Takes what an exporter sends, as JSON. */
async function collector() {
  const bodies: string[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => {
      if (request.url === '/v1/traces') bodies.push(body)
      response.setHeader('content-type', 'application/json').end('{}')
    })
  })
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  closers.push(() => server.close())
  const spans = (): Span[] =>
    bodies.flatMap((body) =>
      JSON.parse(body).resourceSpans.flatMap((resource: { scopeSpans: { spans: Span[] }[] }) =>
        resource.scopeSpans.flatMap((scope) => scope.spans)
      )
    )
  return { endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, spans, text: () => bodies.join('') }
}

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const PARENT = 'b7ad6b7169203331'
const traceparent = `00-${TRACE}-${PARENT}-01`
const call = (params: Record<string, unknown>) => ({
  name: 'execute',
  arguments: { server: 'steady', tool: 'meta', params },
  _meta: { traceparent, tracestate: 'vendor=1' }
})

describe('trace context', { timeout: 60_000 }, () => {
  it('reaches the child unchanged if no collector is set', async () => {
    const gateway = await startGateway({ steady: child('steady') })
    closers.push(() => gateway.end())
    const seen = JSON.parse(textOf({ ...(await gateway.client.callTool(call({}))) }))
    expect(seen).toMatchObject({ traceparent, tracestate: 'vendor=1' })
  })

  it('continues from our own spans if a collector is set, and no span contains an argument', async () => {
    const { endpoint, spans, text } = await collector()
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }
    const gateway = await startGateway({ steady: child('steady') }, { env })
    closers.push(() => gateway.end())
    const seen = JSON.parse(textOf({ ...(await gateway.client.callTool(call({ word: 's3cr3t-word' }))) }))
    await eventually('the spans to arrive', () => spans().some(({ name }) => name === 'gateway execute'))
    const named = (name: string) => spans().find((span) => span.name === name)
    const root = named('gateway execute')
    expect(root).toMatchObject({ traceId: TRACE, parentSpanId: PARENT })
    for (const name of ['routing', 'approval', 'server call']) {
      expect(named(name)).toMatchObject({ traceId: TRACE, parentSpanId: root?.spanId })
    }
    expect(named('server start')?.traceId).toBe(TRACE)
    expect(seen.traceparent).toBe(`00-${TRACE}-${named('server call')?.spanId}-01`)
    expect(seen.tracestate).toBe('vendor=1')
    expect(text()).not.toContain('s3cr3t-word')
  })
})

it('writes the metrics of the stdio gateway to METRICS_FILE', { timeout: 60_000 }, async () => {
  const file = join(temporaryFolder(), 'gateway.prom')
  const gateway = await startGateway({ a: child('steady') }, { env: { METRICS_FILE: file } })
  await gateway.call('execute', { server: 'a', tool: 'echo', params: { message: 'hi' } })
  await gateway.end()
  await gateway.exited
  const text = readFileSync(file, 'utf8')
  expect(text).toContain('mcp_orchestrator_calls_total{server="a",door="stdio",outcome="ok"} 1')
  expect(text).toContain('mcp_orchestrator_server_starts_total{server="a"} 1')
})
