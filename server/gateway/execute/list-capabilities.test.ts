import { expect, it } from 'vitest'
import { noAudit } from '../../audit/audit.fixture.ts'
import { child, openTestConnections } from '../../connections/connections.fixture.ts'
import { createPolicy } from '../../policy/approval-policy.ts'
import { listCapabilities } from './list-capabilities.ts'

// Seen before: with 1,000 servers the answer had 410 kB, more than many models can read.
it('stays short enough for a model with hundreds of servers, and says how to see more of some', async () => {
  const names = Array.from({ length: 400 }, (_, at) => `server-${at}`)
  const test = await openTestConnections(Object.fromEntries(names.map((name) => [name, child('steady')])))
  const core = { ...test, policy: createPolicy([]), audit: noAudit, learn: () => {} }
  const tools = Array.from({ length: 20 }, (_, at) => {
    return { name: `tool-${at}`, description: 'x'.repeat(1000), inputSchema: {}, hash: '' }
  })
  expect(listCapabilities(core, undefined)).toMatchObject({
    more: 200,
    morePending: 350,
    note: expect.stringContaining('find_tool')
  })
  for (const entry of test.index.entries()) test.index.listed(entry, tools, {}, '')
  const all = listCapabilities(core, undefined)
  expect(all).toMatchObject({ more: 200, pending: [] })
  expect(all.servers).toContainEqual({ server: 'server-7', state: 'stopped', tools: 20 })
  expect(JSON.stringify(all).length).toBeLessThan(20_000)
  const one = listCapabilities(core, 'server-399')
  expect(one).toMatchObject({
    servers: [{ tools: expect.arrayContaining([expect.objectContaining({ tool: 'tool-3' })]) }]
  })
  expect(one).not.toHaveProperty('note')
  await test.close()
})
