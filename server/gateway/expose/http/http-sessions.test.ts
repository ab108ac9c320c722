import { LATEST_PROTOCOL_VERSION, WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server'
import { expect, it, vi } from 'vitest'
import { noAudit } from '../../../audit/audit.fixture.ts'
import { openTestConnections } from '../../../connections/connections.fixture.ts'
import { silentLogger } from '../../../lib/logger.ts'
import { Exposed } from '../exposed.ts'
import { HttpSessions } from './http-sessions.ts'

const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

/** A door that has room for one session. */
async function openOne() {
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
  const fetch = (init: RequestInit, gone?: AbortSignal) =>
    sessions.fetch(new Request('http://localhost/mcp', init), { owner: 'local', door: 'http' }, gone ? { gone } : {})
  return {
    send: (more: Record<string, string> = {}) => fetch({ method: 'POST', headers: { ...headers, ...more }, body }),
    listen: (id: string, gone?: AbortSignal) => fetch({ headers: { ...headers, 'mcp-session-id': id } }, gone),
    async close() {
      await sessions.close()
      await test.close()
    }
  }
}

it('replaces a session whose request has failed', async () => {
  const { send, close } = await openOne()
  try {
    const first = await send()
    await first.text()
    const failing = vi.spyOn(WebStandardStreamableHTTPServerTransport.prototype, 'handleRequest')
    failing.mockRejectedValueOnce(new Error('broken'))
    await expect(send({ 'mcp-session-id': first.headers.get('mcp-session-id') ?? '' })).rejects.toThrow('broken')
    expect((await send()).status).toBe(200)
  } finally {
    vi.restoreAllMocks()
    await close()
  }
})

// Checked: if an abandoned body is not noticed, the answer is 503 for ever.
it.each(['given up', 'left'] as const)('replaces a session whose stream was %s', async (how) => {
  const { send, listen, close } = await openOne()
  try {
    const first = await send()
    await first.text()
    const gone = new AbortController()
    const stream = await listen(first.headers.get('mcp-session-id') ?? '', gone.signal)
    expect([stream.status, (await send()).status]).toEqual([200, 503])
    if (how === 'left') gone.abort()
    else await stream.body?.cancel()
    expect((await send()).status).toBe(200)
  } finally {
    await close()
  }
})
