import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { expect, it } from 'vitest'
import { noAudit } from '../../tools/audit/audit.fixture.ts'
import type { Audit } from '../../tools/audit/audit.ts'
import { child } from '../../tools/connections/connections.fixture.ts'
import { serveExposed } from './expose.fixture.ts'

// A client that can be asked borrows a lane, and the next one may get the same.
it.each(['legacy', 'auto'] as const)('puts each call on record under the name of its own client (%s)', async (mode) => {
  const names: (string | undefined)[] = []
  const audit: Audit = {
    ...noAudit,
    begin(call) {
      names.push(call.caller.client)
      return noAudit.begin(call)
    }
  }
  const served = await serveExposed({ a: child('steady') }, 'a', audit)
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
