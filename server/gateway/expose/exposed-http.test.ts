import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { expect, it } from 'vitest'
import { noAudit } from '../../tools/audit/audit.fixture.ts'
import type { Audit } from '../../tools/audit/audit.ts'
import { child, real } from '../../tools/connections/connections.fixture.ts'
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

// No tool is called by these, and yet they read what the server has.
it.each(['all', 'only'] as const)(
  'puts reads on record, and refuses them where everything is denied (%s)',
  async (mode) => {
    const rows: string[] = []
    const audit: Audit = {
      ...noAudit,
      begin({ server, tool }) {
        rows.push(`${server} ${tool}`)
        return ({ outcome, code }) => void rows.push([tool, outcome, ...(code ? [code] : [])].join(' '))
      }
    }
    const servers = { a: real('server-everything') }
    const rule = { glob: 'a/*', verdict: 'deny' as const }
    const only = mode === 'only' ? 'a' : undefined
    const uri = 'demo://resource/dynamic/text/1'
    const ref = { type: 'ref/prompt' as const, name: only ? 'completable-prompt' : 'a__completable-prompt' }
    for (const rules of [[], [rule]]) {
      rows.length = 0
      const served = await serveExposed(servers, only, audit, rules)
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
        const isOpen = rules.length === 0
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
  }
)
