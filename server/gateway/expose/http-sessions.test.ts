import { LATEST_PROTOCOL_VERSION, WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server'
import { expect, it, vi } from 'vitest'
import { silentLogger } from '../../lib/logger.ts'
import { noAudit } from '../../tools/audit/audit.fixture.ts'
import { openTestConnections } from '../../tools/connections/connections.fixture.ts'
import { Exposed } from './exposed.ts'
import { HttpSessions } from './http-sessions.ts'

it('makes room of a session whose request has failed', async () => {
  const test = await openTestConnections({})
  const core = { ...test, policy: () => 'allow' as const, audit: noAudit, learn: () => {} }
  const exposed = new Exposed({ only: undefined, core, version: '1', logger: silentLogger })
  const sessions = new HttpSessions({
    open: async () => exposed,
    logger: silentLogger,
    maxBodyBytes: 10_000,
    maxSessions: 1
  })
  const clientInfo = { name: 'ann', version: '1' }
  const params = { protocolVersion: LATEST_PROTOCOL_VERSION, capabilities: {}, clientInfo }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const send = (more: Record<string, string> = {}) =>
    sessions.fetch(new Request('http://localhost/mcp', { method: 'POST', headers: { ...headers, ...more }, body }), {
      owner: 'local',
      door: 'http'
    })
  try {
    const first = await send()
    await first.text()
    const failing = vi.spyOn(WebStandardStreamableHTTPServerTransport.prototype, 'handleRequest')
    failing.mockRejectedValueOnce(new Error('broken'))
    await expect(send({ 'mcp-session-id': first.headers.get('mcp-session-id') ?? '' })).rejects.toThrow('broken')
    expect((await send()).status).toBe(200)
  } finally {
    vi.restoreAllMocks()
    await sessions.close()
    await test.close()
  }
})
