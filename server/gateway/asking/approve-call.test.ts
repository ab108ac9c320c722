import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { ApprovalAnswer } from '../../../contract/rest.ts'
import { noAudit } from '../../audit/audit.fixture.ts'
import { readRegistry } from '../../catalog/registry.ts'
import { child, LOCAL, openTestConnections } from '../../connections/connections.fixture.ts'
import { silentLogger } from '../../lib/logger.ts'
import { ApprovalInbox } from '../../policy/approval-inbox.ts'
import { createPolicy } from '../../policy/approval-policy.ts'
import { createDefinitionGuard } from '../../policy/definition-guard.ts'
import { fakeKeyValueStore } from '../../storage/fake-key-value-store.ts'
import { runTool } from '../execute/run-tool.ts'
import { askingPrompter } from './client-prompter.ts'
import { openApprovals } from './open-approvals.ts'

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

/** One server that asks about every write, and that the test puts another in the place of. */
async function open() {
  const test = await openTestConnections({})
  closers.push(test.close)
  const count = (which: string) => join(test.dir, which)
  const use = (which: string) => {
    const mcpServers = { db: child('steady', [count(which)]) }
    test.index.update(readRegistry(JSON.stringify({ mcpServers }), 'mcp.json'))
  }
  const keyValues = fakeKeyValueStore()
  const shared = { keyValues, inbox: new ApprovalInbox(keyValues), guard: createDefinitionGuard(keyValues) }
  const approvals = openApprovals(shared, silentLogger, { waitMs: 20_000, asksAboutChange: () => false })
  const core = { ...test, approvals, policy: createPolicy([]), audit: noAudit, learn: () => {} }
  const { signal } = new AbortController()
  const write = async (choose?: () => Promise<string>) => {
    const tools = await test.connections.list('db', { caller: LOCAL, signal })
    const tool = tools.find(({ name }) => name === 'write')
    if (!tool) throw new Error('no tool')
    const toolRequest = { server: 'db', tool, args: { message: 'x' } }
    return runTool(core, toolRequest, { caller: LOCAL, signal, ...(choose && { prompter: { choose } }) })
  }
  const isWritten = (which: string) => existsSync(count(which)) && readFileSync(count(which), 'utf8') !== ''
  return { use, write, isWritten, inbox: approvals.inbox }
}

describe('an approval', () => {
  it('does not cover a server that replaces the one it was given for', async () => {
    const { use, write, isWritten } = await open()
    use('staging')
    const asked = write(async () => {
      use('production')
      return 'Approve'
    })
    await expect(asked).rejects.toMatchObject({ code: 'definition_changed' })
    expect([isWritten('staging'), isWritten('production')]).toEqual([false, false])
  })

  it('that is remembered holds as long as the server is the same', async () => {
    const { use, write, isWritten } = await open()
    use('staging')
    let questions = 0
    const always = async () => {
      questions++
      return 'Approve, and do not ask again for this tool'
    }
    await write(always)
    await write(always)
    expect([questions, isWritten('staging')]).toEqual([1, true])
    use('production')
    await write(always)
    expect(questions).toBe(2)
  })

  it('is none where the client fails to ask', async () => {
    const { use, write, isWritten } = await open()
    use('staging')
    const fail = async () => {
      throw new Error('Method not found')
    }
    await expect(write(fail)).rejects.toMatchObject({
      code: 'approval_unavailable',
      message: expect.stringContaining('your client could not ask')
    })
    const { choose } = askingPrompter({ elicitation: {} }, async () => ({ action: 'ACCEPT' }))
    const question = { about: 'x', message: 'Run it?', choices: ['Yes, run it'] as [string] }
    await expect(choose?.(question, new AbortController().signal)).rejects.toMatchObject({
      code: 'approval_unavailable'
    })
    expect(isWritten('staging')).toBe(false)
  })

  // Checked: if any answer is remembered, the second call runs without a card.
  it('in the inbox covers one call, whatever else the answer says', async () => {
    const { use, write, inbox } = await open()
    use('staging')
    inbox.attend()
    closers.push(() => inbox.leave())
    const card = () => vi.waitUntil(async () => (await inbox.open())[0])
    const first = write()
    const { id, hash, claims } = await card()
    expect(claims).toMatchObject({ description: expect.any(String) })
    // As the page of an earlier version sent it.
    await inbox.answer(id, hash, { approved: true, remember: true } as ApprovalAnswer)
    await first
    const second = write()
    const again = await card()
    await inbox.answer(again.id, again.hash, { approved: false })
    await expect(second).rejects.toMatchObject({ code: 'approval_denied' })
  })
})
