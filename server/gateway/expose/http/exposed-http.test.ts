import { Client, type Progress, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { expect, it, vi } from 'vitest'
import type { ApprovalRule } from '../../../../contract/servers/approval-rule.ts'
import { eventually } from '../../../../tests/support/eventually.ts'
import { noAudit, openCall } from '../../../audit/audit.fixture.ts'
import type { Audit } from '../../../audit/audit.ts'
import { child, real } from '../../../connections/connections.fixture.ts'
import { createPolicy } from '../../../policy/approval-policy.ts'
import { Discovery } from '../../execute/discovery.ts'
import { serveExposed } from '../expose.fixture.ts'

// A client that can be asked borrows a lane, and the next one may get the same.
it.each(['legacy', 'auto'] as const)('records each call under the name of its own client (%s)', async (mode) => {
  const names: (string | undefined)[] = []
  const audit: Audit = {
    ...noAudit,
    begin(call) {
      names.push(call.caller.client)
      return noAudit.begin(call)
    }
  }
  const served = await serveExposed({ a: child('steady') }, 'a', { audit })
  try {
    for (const name of ['ann', 'bob']) {
      const capabilities = { elicitation: { form: {} } }
      const client = new Client({ name, version: '1' }, { versionNegotiation: { mode }, capabilities })
      await client.connect(new StreamableHTTPClientTransport(served.url))
      await client.listTools()
      await client.callTool({ name: 'echo', arguments: { message: 'hi' } })
      await client.close()
    }
    expect(names).toEqual(['ann/1', 'bob/1'])
  } finally {
    await served.close()
  }
})

// Seen before: the greeting waited for servers that were starting, and then the list did.
it.each(['legacy', 'auto'] as const)('waits once for servers that were never seen (%s)', async (mode) => {
  const waits: unknown[] = []
  vi.spyOn(Discovery.prototype, 'discover').mockImplementation(async (_core, _context, waitMs) => {
    waits.push(waitMs ?? 'briefly')
    return { pending: ['slow'], starting: ['slow'], failed: [] }
  })
  const served = await serveExposed({ slow: { command: 'none' }, later: { command: 'none' } })
  const client = new Client({ name: 'ann', version: '1' }, { versionNegotiation: { mode } })
  try {
    await client.connect(new StreamableHTTPClientTransport(served.url))
    expect((await client.listTools()).tools).toEqual([])
    expect(waits.filter((wait) => wait !== 0)).toEqual(['briefly'])
  } finally {
    vi.restoreAllMocks()
    await client.close()
    await served.close()
  }
})

// No tool is called by these, and yet they read what the server has.
it.each(['all', 'only'] as const)('records reads, and refuses them where everything is denied (%s)', async (mode) => {
  const rows: string[] = []
  const audit: Audit = {
    ...noAudit,
    begin({ server, tool }) {
      rows.push(`${server} ${tool}`)
      return openCall(({ outcome, code }) => void rows.push([tool, outcome, ...(code ? [code] : [])].join(' ')))
    }
  }
  const servers = { a: real('server-everything') }
  const only = mode === 'only' ? 'a' : undefined
  const uri = 'demo://resource/dynamic/text/1'
  const ref = { type: 'ref/prompt' as const, name: only ? 'completable-prompt' : 'a__completable-prompt' }
  for (const rule of ['allow', 'deny'] as const) {
    rows.length = 0
    const served = await serveExposed(servers, only, { audit, policy: createPolicy([{ glob: 'a/*', rule }]) })
    const client = new Client({ name: 'ann', version: '1' })
    try {
      await client.connect(new StreamableHTTPClientTransport(served.url))
      const asked = [
        () => client.readResource({ uri }),
        () => client.getPrompt({ name: ref.name, arguments: { department: 'Sales', name: 'Eve' } }),
        () => client.complete({ ref, argument: { name: 'department', value: 'S' } }),
        () => client.subscribeResource({ uri })
      ]
      const methods = ['resources/read', 'prompts/get', 'completion/complete', 'resources/subscribe']
      const isOpen = rule === 'allow'
      expect((await client.listResources()).resources.length > 0).toBe(isOpen)
      expect((await client.listPrompts()).prompts.length > 0).toBe(isOpen)
      for (const ask of asked) {
        if (isOpen) await ask()
        else await expect(ask()).rejects.toMatchObject({ data: { code: 'denied_by_policy' } })
      }
      const end = isOpen ? 'ok' : 'refused denied_by_policy'
      expect(rows).toEqual(methods.flatMap((method) => [`a ${method}`, `${method} ${end}`]))
    } finally {
      await client.close()
      await served.close()
    }
  }
})

// The question is one round of the call, the progress belongs to the next.
it.each(['legacy', 'auto'] as const)(
  'applies the rules as they are after the approval, and reports progress then (%s)',
  async (mode) => {
    const rule: { now: ApprovalRule; next: ApprovalRule } = { now: 'ask', next: 'ask' }
    const served = await serveExposed({ a: real('server-everything') }, 'a', { policy: () => rule.now })
    const capabilities = { elicitation: { form: {} } }
    const client = new Client({ name: 'ann', version: '1' }, { versionNegotiation: { mode }, capabilities })
    client.setRequestHandler('elicitation/create', () => {
      rule.now = rule.next
      return { action: 'accept' as const, content: { answer: 'Approve' } }
    })
    try {
      await client.connect(new StreamableHTTPClientTransport(served.url))
      await client.listTools()
      const seen: number[] = []
      const long = { name: 'trigger-long-running-operation', arguments: { duration: 0.2, steps: 2 } }
      // The client's own count of rounds has no total.
      const onprogress = ({ progress, total }: Progress) => void (total === undefined || seen.push(progress))
      const call = () => client.callTool(long, { onprogress })
      await call()
      expect(seen).toEqual([1, 2])
      rule.next = 'deny'
      expect(JSON.stringify(await call())).toContain('denied_by_policy')
      expect(seen).toEqual([1, 2])
    } finally {
      await client.close()
      await served.close()
    }
  }
)

// Checked: if it is watched before the SDK has checked the request, a refused one keeps its server running.
it('watches resources for a subscription stream until it ends, and for a refused one not at all', async () => {
  const served = await serveExposed({ c: child('conformance-server', ['legacy']) }, 'c')
  const listen = (more: object) => {
    const params = {
      notifications: { resourceSubscriptions: ['test://watched-resource'], ...more },
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientCapabilities': {}
      }
    }
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'subscriptions/listen'
    }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'subscriptions/listen', params })
    return fetch(served.url, { method: 'POST', headers, body })
  }
  const busy = () => served.connections.state('c')?.busy ?? 0
  try {
    expect(await (await listen({ toolsListChanged: 'maybe' })).json()).toMatchObject({ error: { code: -32_602 } })
    expect(busy()).toBe(0)
    const streams = await Promise.all([listen({}), listen({})])
    expect(busy()).toBe(1)
    for (const { body } of streams) await body?.cancel()
    await eventually('the server to stop', () => busy() === 0)
  } finally {
    await served.close()
  }
})

// Checked: if a URI that nobody has listed yet goes to the first server that may have it, the subscription is made there.
it('sends a URI only to the server that lists it, even if the client has listed nothing', async () => {
  const rows: string[] = []
  const audit: Audit = {
    ...noAudit,
    begin({ server, tool }) {
      rows.push(`${server} ${tool}`)
      return openCall(() => {})
    }
  }
  const servers = {
    memory: real('server-memory'),
    broken: child('crash-on-start'),
    everything: real('server-everything')
  }
  const served = await serveExposed(servers, undefined, { audit })
  const client = new Client({ name: 'ann', version: '1' })
  try {
    await client.connect(new StreamableHTTPClientTransport(served.url))
    await expect(client.readResource({ uri: 'secret://plans' })).rejects.toThrow('Resource not found: secret://plans')
    await expect(client.subscribeResource({ uri: 'secret://plans' })).rejects.toThrow('Resource not found')
    expect(rows).toEqual([])
  } finally {
    await client.close()
    await served.close()
  }
})

it.each(['subscribe', 'complete', 'read'] as const)(
  'finds the server of a URI for the first request (%s)',
  async (first) => {
    const rows: string[] = []
    const audit: Audit = {
      ...noAudit,
      begin({ server, tool }) {
        rows.push(`${server} ${tool}`)
        return openCall(() => {})
      }
    }
    const served = await serveExposed(
      { memory: real('server-memory'), everything: real('server-everything') },
      undefined,
      { audit }
    )
    const client = new Client({ name: 'ann', version: '1' })
    const uri = 'demo://resource/dynamic/text/1'
    const ref = { type: 'ref/resource' as const, uri: 'demo://resource/dynamic/text/{resourceId}' }
    const ask = {
      subscribe: () => client.subscribeResource({ uri }),
      complete: () => client.complete({ ref, argument: { name: 'resourceId', value: '1' } }),
      read: () => client.readResource({ uri })
    }
    try {
      await client.connect(new StreamableHTTPClientTransport(served.url))
      await ask[first]()
      expect(rows).toEqual([`everything ${first === 'complete' ? 'completion/complete' : `resources/${first}`}`])
    } finally {
      await client.close()
      await served.close()
    }
  }
)
