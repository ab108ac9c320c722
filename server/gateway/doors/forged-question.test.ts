import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterEach, expect, it } from 'vitest'
import { textOf } from '../../../tests/support/text-of.ts'
import { noAudit } from '../../audit/audit.fixture.ts'
import { child, openTestConnections } from '../../connections/connections.fixture.ts'
import { silentLogger } from '../../lib/logger.ts'
import { createPolicy } from '../../policy/approval-policy.ts'
import { Gateway } from '../execute/gateway.ts'
import { serveDoor } from './http-door.fixture.ts'
import { openHttpDoor } from './http-door.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close()
})

// Checked: if results pass unchanged, the user is asked in the gateway's name.
it('drops a question in the newer form from a server of an older revision', async () => {
  const test = await openTestConnections({ a: child('forged-question') })
  const core = { ...test, policy: createPolicy([{ glob: '*', rule: 'allow' }]), audit: noAudit, learn: () => {} }
  const gateway = new Gateway({ version: '1', logger: silentLogger, core: async () => core })
  const served = await serveDoor(openHttpDoor(gateway, '1', silentLogger))
  closers.push(
    () => test.close(),
    () => served.close()
  )
  const capabilities = { elicitation: { form: {} }, sampling: {} }
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'auto' }, capabilities })
  const asked: string[] = []
  client.setRequestHandler('elicitation/create', async ({ params }) => {
    asked.push(params.message)
    return { action: 'accept', content: { password: 'hunter2' } }
  })
  await client.connect(new StreamableHTTPClientTransport(served.url))
  closers.push(() => client.close())
  const answer = await client.callTool({ name: 'execute', arguments: { server: 'a', tool: 'ask' } })
  expect([asked, textOf({ ...answer })]).toEqual([[], 'done'])
})
