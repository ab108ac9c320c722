import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ApprovalRule } from '../../../contract/servers/approval-rule.ts'
import { noAudit } from '../../audit/audit.fixture.ts'
import type { Caller } from '../../calls/caller.ts'
import { readRegistry } from '../../catalog/registry.ts'
import { ApprovalPending, type CallHooks, type CallOutcome, type Decision } from '../../code/program-call.ts'
import { child, LOCAL, openTestConnections, type TestConnections } from '../../connections/connections.fixture.ts'
import { isAppError } from '../../lib/errors.ts'
import { silentLogger } from '../../lib/logger.ts'
import { ApprovalInbox } from '../../policy/approval-inbox.ts'
import { createPolicy, rulesOf } from '../../policy/approval-policy.ts'
import { createDefinitionGuard } from '../../policy/definition-guard.ts'
import { fakeKeyValueStore } from '../../storage/fake-key-value-store.ts'
import { openApprovals } from '../asking/open-approvals.ts'
import { Discovery } from '../execute/discovery.ts'
import { runTool } from '../execute/run-tool.ts'
import type { GatewayServices } from '../gateway-services.ts'
import { gatewayCalls } from './gateway-calls.ts'

const RULES: (ApprovalRule | 'none')[] = ['none', 'allow', 'ask', 'deny']
const keyValues = fakeKeyValueStore()
const inbox = new ApprovalInbox(keyValues)
const count = () => join(test.dir, 'count')
let test: TestConnections
let core: GatewayServices

beforeAll(async () => {
  test = await openTestConnections({})
  const mcpServers = Object.fromEntries(
    RULES.map((rule) => [rule, child('steady', [count()], rule === 'none' ? {} : { approval: { '*': rule } })])
  )
  const registry = readRegistry(JSON.stringify({ mcpServers }), 'mcp.json')
  test.index.update(registry)
  const rules = rulesOf(registry.servers.values())
  const shared = { keyValues, inbox, guard: createDefinitionGuard(keyValues) }
  const ruled = createPolicy(rules)
  core = {
    ...test,
    approvals: openApprovals(shared, silentLogger, { waitMs: 1000, asksAboutChange: () => false }),
    policy: createPolicy([{ glob: '*', rule: 'allow' }, ...rules]),
    audit: noAudit,
    learn: () => {},
    code: { runs: undefined!, isAllowedByRule: (server, tool) => ruled(server, tool) === 'allow' }
  }
})
afterAll(() => test.close())

const written = () => (existsSync(count()) ? readFileSync(count(), 'utf8') : '')

type Outcome = 'runs' | 'asks' | 'refused'

const CALLERS: Caller[] = [LOCAL, { owner: 'ada', door: 'http', client: 'editor/1' }, { owner: 'bob', door: 'http' }]

async function direct(server: string, tool: string, caller: Caller): Promise<Outcome> {
  const context = { caller, signal: new AbortController().signal }
  const found = (await test.connections.list(server, context)).find(({ name }) => name === tool)
  if (!found) throw new Error('no tool')
  try {
    await runTool(core, { server, tool: found, args: { message: 'direct' } }, context)
    return 'runs'
  } catch (error) {
    return isAppError(error, 'approval_unavailable') ? 'asks' : 'refused'
  }
}

const hooks = (more: Partial<CallHooks> = {}): CallHooks => ({
  record: async () => {},
  ...{ signal: new AbortController().signal, interruptions: 0 },
  ...{ beforeSending: async () => {}, decided: () => undefined, ...more }
})

function program(
  server: string,
  tool: string,
  more: Partial<CallHooks> = {},
  args: object = { message: 'code' },
  caller: Caller = LOCAL
) {
  const calls = gatewayCalls(core, new Discovery(), { caller })
  const call = { n: 1, kind: 'tool' as const, server, tool, args: { ...args }, line: 1 }
  return calls.run(call, hooks(more))
}

async function byCode(server: string, tool: string, caller: Caller): Promise<Outcome> {
  try {
    return (await program(server, tool, {}, { message: 'code' }, caller)).ok ? 'runs' : 'refused'
  } catch (error) {
    return error instanceof ApprovalPending ? 'asks' : 'refused'
  }
}

describe('who is asked', () => {
  // Checked: if only the rules decide, the write of a program runs.
  it.each<[rule: ApprovalRule | 'none', tool: string, direct: Outcome, byCode: Outcome]>([
    ['deny', 'echo', 'refused', 'refused'],
    ['deny', 'write', 'refused', 'refused'],
    ['ask', 'echo', 'asks', 'asks'],
    ['ask', 'write', 'asks', 'asks'],
    ['allow', 'echo', 'runs', 'runs'],
    ['allow', 'write', 'runs', 'runs'],
    ['none', 'echo', 'runs', 'runs'],
    ['none', 'write', 'runs', 'asks']
  ])('rule %s, tool %s: direct %s, in a program %s', async (rule, tool, expectedDirect, expectedByCode) => {
    for (const caller of CALLERS) {
      expect([caller, await direct(rule, tool, caller)]).toEqual([caller, expectedDirect])
      expect([caller, await byCode(rule, tool, caller)]).toEqual([caller, expectedByCode])
    }
  })
})

describe('a call of a program', () => {
  const pending = async (promise: Promise<CallOutcome>) => {
    const error = await promise.catch((reason: unknown) => reason)
    if (!(error instanceof ApprovalPending)) throw new Error(`not asked: ${String(error)}`)
    return error.card
  }

  it('runs after an approval of exactly what was shown, and not after one of something else', async () => {
    const { hash } = await pending(program('none', 'write', {}, { message: 'first' }))
    const approved = (given: string): Decision | undefined => (given === hash ? { hash, approved: true } : undefined)
    await pending(program('none', 'write', { decided: approved }, { message: 'second' }))
    expect(await program('none', 'write', { decided: approved }, { message: 'first' })).toEqual({
      ok: true,
      value: 'written'
    })
    expect(written()).toContain('first')
    expect(written()).not.toContain('second')
  })

  it('is not sent if its start can not be recorded', async () => {
    const beforeSending = () => Promise.reject(new Error('the store is gone'))
    await expect(program('allow', 'write', { beforeSending }, { message: 'unrecorded' })).rejects.toThrow('the store')
    expect(written()).not.toContain('unrecorded')
  })

  it('asks again, with a warning, if it may have run before, even where a rule allows it', async () => {
    const card = await pending(program('allow', 'write', { interruptions: 1 }, { message: 'again' }))
    expect(card.warning).toContain('Nobody knows whether it took effect')
    const decided = (hash: string) => ({ hash, approved: false })
    expect(await program('allow', 'write', { interruptions: 1, decided }, { message: 'again' })).toMatchObject({
      ok: false,
      code: 'outcome_unknown'
    })
    expect(await program('none', 'echo', { interruptions: 1 })).toEqual({ ok: true, value: 'code' })
    expect(written()).not.toContain('again')
  })

  it('gets clear errors for arguments and names that are wrong', async () => {
    expect(await program('none', 'echo', {}, {})).toMatchObject({ code: 'invalid_params' })
    await expect(program('nobody', 'echo')).rejects.toMatchObject({ code: 'unknown_server' })
    await expect(program('none', 'nothing')).rejects.toMatchObject({ code: 'unknown_tool' })
  })
})
