import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterEach, describe, expect, it } from 'vitest'
import { discard, temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { textOf } from '../../../tests/support/text-of.ts'
import { noAudit } from '../../audit/audit.fixture.ts'
import { child, openTestConnections } from '../../connections/connections.fixture.ts'
import { silentLogger } from '../../lib/logger.ts'
import { ApprovalInbox } from '../../policy/approval-inbox.ts'
import { createPolicy } from '../../policy/approval-policy.ts'
import { createDefinitionGuard } from '../../policy/definition-guard.ts'
import { fakeKeyValueStore } from '../../storage/fake-key-value-store.ts'
import { serveDoor } from '../doors/http-door.fixture.ts'
import { openHttpDoor } from '../doors/http-door.ts'
import { Gateway } from '../execute/gateway.ts'
import { openApprovals } from './open-approvals.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close()
})

/** Two instances that share a store, as behind a load balancer. */
async function serveTwo() {
  const dir = temporaryFolder()
  closers.push(() => discard(dir))
  const keyValues = fakeKeyValueStore()
  const count = join(dir, 'count')
  const serve = async () => {
    const test = await openTestConnections({ steady: child('steady', [count]) }, { keyValues })
    const shared = { keyValues, inbox: new ApprovalInbox(keyValues), guard: createDefinitionGuard(keyValues) }
    const approvals = openApprovals(shared, silentLogger, { waitMs: 20_000, asksAboutChange: () => false })
    const core = { ...test, approvals, policy: createPolicy([]), audit: noAudit, learn: () => {} }
    const gateway = new Gateway({ version: '1', logger: silentLogger, core: async () => core })
    const { url, close } = await serveDoor(openHttpDoor(gateway, '1', silentLogger))
    closers.push(() => test.close(), close)
    return { url, inbox: approvals.inbox }
  }
  const written = () => (existsSync(count) ? readFileSync(count, 'utf8').trim().split('\n') : [])
  return { one: await serve(), other: await serve(), written }
}

const write = (message: string) => ({
  name: 'execute',
  arguments: { server: 'steady', tool: 'write', params: { message } }
})
const yes = { answer: { action: 'accept', content: { answer: 'Approve' } } }

/** A client of the newer revision, without the SDK's own way of answering. */
async function connect(url: URL) {
  const client = new Client(
    { name: 'test', version: '1' },
    {
      versionNegotiation: { mode: 'auto' },
      capabilities: { elicitation: { form: {} } },
      inputRequired: { autoFulfill: false }
    }
  )
  await client.connect(new StreamableHTTPClientTransport(url))
  closers.push(() => client.close())
  return async (params: Record<string, unknown>): Promise<Record<string, unknown>> => ({
    ...(await client.request({ method: 'tools/call', params }, { allowInputRequired: true }))
  })
}

describe('an approval given in rounds', () => {
  // Checked: if one counts more than once, both rounds run.
  it('runs the call that was shown, once, on whichever instance it arrives', async () => {
    const { one, other, written } = await serveTwo()
    const [call, callOther] = [await connect(one.url), await connect(other.url)]
    const asked = await call(write('one'))
    expect(asked.resultType).toBe('input_required')
    const requestState = String(asked.requestState)
    expect(written()).toEqual([])
    const tampered = `${requestState.slice(0, -4)}AAAA`
    for (const wrong of [
      { ...write('two'), requestState, inputResponses: yes },
      { ...write('one'), requestState: tampered, inputResponses: yes }
    ])
      await expect(call(wrong)).rejects.toThrow(/another question|Invalid or expired/)
    // The first of the two has used it up.
    await expect(callOther({ ...write('one'), requestState, inputResponses: yes })).rejects.toThrow(
      'Invalid or expired'
    )

    const again = await call(write('one'))
    const answered = { ...write('one'), requestState: again.requestState, inputResponses: yes }
    const both = await Promise.allSettled([call(answered), callOther(answered)])
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    expect(written()).toEqual(['one'])
    // Without an answer, or with a rejection, nothing runs.
    const third = await call(write('three'))
    const empty = await call({ ...write('three'), requestState: third.requestState })
    expect([empty.isError, textOf(empty)]).toEqual([true, expect.stringContaining('could not ask')])
    expect(written()).toEqual(['one'])
  })

  it('comes from the inbox for a client of the older revisions, which can not be asked over HTTP', async () => {
    const { one, other, written } = await serveTwo()
    const client = new Client({ name: 'old', version: '1' }, { capabilities: { elicitation: {} } })
    await client.connect(new StreamableHTTPClientTransport(one.url))
    closers.push(() => client.close())
    const refused = await client.callTool(write('nobody there'))
    expect(textOf({ ...refused })).toContain('no web page is running')
    other.inbox.attend()
    closers.push(() => other.inbox.leave())
    const waiting = client.callTool(write('through the inbox'))
    await expect.poll(async () => (await other.inbox.open()).length).toBe(1)
    const [card] = await other.inbox.open()
    await other.inbox.answer(card?.id ?? '', card?.hash ?? '', { approved: true })
    expect(textOf({ ...(await waiting) })).toBe('written')
    expect(written()).toEqual(['through the inbox'])
    const cut = client.callTool(write('too late'))
    await expect.poll(async () => (await other.inbox.open()).length).toBe(1)
    await one.inbox.leave()
    expect(textOf({ ...(await cut) })).toContain('The server shut down before anyone answered. The tool was not run')
    await expect.poll(() => other.inbox.open()).toEqual([])
    expect(written()).toEqual(['through the inbox'])
  })
})
