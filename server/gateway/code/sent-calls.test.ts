import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import type { ApprovalRule } from '../../../contract/servers/approval-rule.ts'
import { discard, temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { noAudit } from '../../audit/audit.fixture.ts'
import { readRegistry } from '../../catalog/registry.ts'
import { ApprovalPending, type CallHooks } from '../../code/program-call.ts'
import { child, LOCAL, openTestConnections, type TestConnections } from '../../connections/connections.fixture.ts'
import { silentLogger } from '../../lib/logger.ts'
import { ApprovalInbox } from '../../policy/approval-inbox.ts'
import { createPolicy, rulesOf } from '../../policy/approval-policy.ts'
import { createDefinitionGuard } from '../../policy/definition-guard.ts'
import { fakeKeyValueStore } from '../../storage/fake-key-value-store.ts'
import { openApprovals } from '../asking/open-approvals.ts'
import { Discovery } from '../execute/discovery.ts'
import type { GatewayServices } from '../gateway-services.ts'
import { gatewayCalls } from './gateway-calls.ts'

let test: TestConnections
let dir: string
afterEach(async () => {
  await test.close()
  discard(dir)
})

interface Shape {
  annotations?: object
  rule?: ApprovalRule
  alternatives?: string[]
}

/** Servers whose only tool is `put`. */
async function open(servers: Record<string, Shape>) {
  dir = temporaryFolder()
  test = await openTestConnections({})
  const mcpServers = Object.fromEntries(
    Object.entries(servers).map(([name, { annotations, rule, alternatives = [] }]) => {
      writeFileSync(join(dir, name), JSON.stringify([{ name: 'put', ...(annotations && { annotations }) }]))
      const more = { alternatives, ...(rule && { approval: { put: rule } }) }
      return [name, child('shaped', [join(dir, name), join(dir, `${name}.calls`)], more)]
    })
  )
  const registry = readRegistry(JSON.stringify({ mcpServers }), 'mcp.json')
  test.index.update(registry)
  const keyValues = fakeKeyValueStore()
  const shared = { keyValues, inbox: new ApprovalInbox(keyValues), guard: createDefinitionGuard(keyValues) }
  const ruled = createPolicy(rulesOf(registry.servers.values()))
  const core: GatewayServices = {
    ...test,
    approvals: openApprovals(shared, silentLogger, { waitMs: 1000, asksAboutChange: () => false }),
    policy: createPolicy([{ glob: '*', rule: 'allow' }, ...rulesOf(registry.servers.values())]),
    audit: noAudit,
    learn: () => {},
    code: { runs: undefined!, isAllowedByRule: (server, tool) => ruled(server, tool) === 'allow' }
  }
  const signal = new AbortController().signal
  for (const server of Object.keys(servers)) await test.connections.list(server, { caller: LOCAL, signal })
  const put = (server: string, more: Partial<CallHooks> = {}) =>
    gatewayCalls(core, new Discovery(), { caller: LOCAL }).run(
      { n: 1, kind: 'tool', server, tool: 'put', args: {}, line: 1 },
      {
        ...{ signal, interruptions: 0, beforeSending: async () => {}, record: async () => {} },
        ...{ decided: () => undefined, ...more }
      }
    )
  const goAway = async (server: string) => {
    await test.connections.stop(server)
    rmSync(join(dir, server))
  }
  return { put, goAway, calls: (server: string) => existsSync(join(dir, `${server}.calls`)) }
}

const IDEMPOTENT = { annotations: { idempotentHint: true } }

it('records a write before it is sent, although its server says that it may be repeated', async () => {
  const { put, calls } = await open({ disk: { ...IDEMPOTENT, rule: 'allow' } })
  await expect(put('disk', { beforeSending: () => Promise.reject(new Error('the store is gone')) })).rejects.toThrow(
    'the store is gone'
  )
  expect(calls('disk')).toBe(false)
})

// Checked: if the server's hint counts, the write is sent again without asking.
it.each<[string, Shape]>([
  ['a rule allows it', { ...IDEMPOTENT, rule: 'allow' }],
  ['it was approved', IDEMPOTENT]
])(
  'asks before it repeats an interrupted write of a server that says that it may be, although %s',
  async (_, shape) => {
    const { put, calls } = await open({ disk: shape })
    const first = await put('disk').then(
      () => '',
      (error) => (error instanceof ApprovalPending ? error.card.hash : '')
    )
    rmSync(join(dir, 'disk.calls'), { force: true })
    const decided = (hash: string) => (hash === first ? { hash, approved: true } : undefined)
    await expect(put('disk', { interruptions: 1, decided })).rejects.toThrow(ApprovalPending)
    expect(calls('disk')).toBe(false)
  }
)

// Checked: if only the rule of the named server counts, the alternative runs.
it.each<[string, Shape, boolean]>([
  ['no rule', {}, false],
  ['a rule that allows it', { rule: 'allow' }, true]
])('falls back to a tool that may write and has %s: %s', async (_, other, runs) => {
  const { put, goAway, calls } = await open({ disk: { rule: 'allow', alternatives: ['other'] }, other })
  await goAway('disk')
  const made = put('disk')
  if (runs) expect(await made).toMatchObject({ ok: true })
  else await expect(made).rejects.toThrow()
  expect(calls('other')).toBe(runs)
})
