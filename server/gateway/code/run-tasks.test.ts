/** Programs as tasks, for clients that speak the tasks extension (SEP-2663), over HTTP. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterEach, expect, it } from 'vitest'
import { noAudit } from '../../audit/audit.fixture.ts'
import { CodeRuns } from '../../code/code-runs.ts'
import { fakeEventLog } from '../../code/fake-event-log.ts'
import { localRealm } from '../../code/realms/local-realm.fixture.ts'
import { openTestConnections } from '../../connections/connections.fixture.ts'
import { silentLogger } from '../../lib/logger.ts'
import { ApprovalInbox } from '../../policy/approval-inbox.ts'
import { createPolicy } from '../../policy/approval-policy.ts'
import { fakeKeyValueStore } from '../../storage/fake-key-value-store.ts'
import { serveDoor } from '../doors/http-door.fixture.ts'
import { openHttpDoor } from '../doors/http-door.ts'
import { Gateway } from '../execute/gateway.ts'
import { runCodeTool } from './run-code.ts'

const EXTENSION = 'io.modelcontextprotocol/tasks'
const PREFIX = 'io.modelcontextprotocol/'
const CODE = 'await new Promise((done) => setTimeout(done, 60_000)); 7'
let url: URL
let runs: CodeRuns
let owner: string
const closers: (() => unknown)[] = []

/** `answerMs`: how long a caller waits before it gets a task. */
async function open(answerMs: number): Promise<void> {
  owner = 'local'
  const keyValues = fakeKeyValueStore()
  const test = await openTestConnections({})
  runs = new CodeRuns({
    ...{ events: fakeEventLog(), keyValues, inbox: new ApprovalInbox(keyValues), logger: silentLogger, home: 'test' },
    openRealm: async () => localRealm(),
    limits: { MAX_SESSION_LOG_MB: 64, MAX_OWNER_LOG_MB: 1024, MAX_LOG_MB: 10_240 },
    times: { answerMs }
  })
  const code = { runs, isAllowedByRule: () => false }
  const core = { ...test, policy: createPolicy([]), audit: noAudit, learn: () => {}, code }
  const gateway = new Gateway({
    ...{ version: '1', logger: silentLogger, core: async () => core },
    extraTools: [runCodeTool()]
  })
  const served = await serveDoor(openHttpDoor(gateway, '1', silentLogger, () => owner))
  url = served.url
  closers.push(
    () => test.close(),
    served.close,
    () => runs.close()
  )
}
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close()
})

/** One request of the newer revision. */
async function ask(method: string, params: Record<string, unknown>, takesTasks = true) {
  const meta = {
    [`${PREFIX}protocolVersion`]: '2026-07-28',
    [`${PREFIX}clientInfo`]: { name: 'test', version: '1' },
    [`${PREFIX}clientCapabilities`]: takesTasks ? { extensions: { [EXTENSION]: {} } } : {}
  }
  const name = String(params.name ?? params.taskId ?? '')
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      ...{ 'mcp-protocol-version': '2026-07-28', 'mcp-method': method, ...(name ? { 'mcp-name': name } : {}) }
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } })
  })
  const text = await response.text()
  const data = text.startsWith('{') ? text : (/^data: (\{.*)$/m.exec(text)?.[1] ?? text)
  const { result, error }: { result: Record<string, unknown>; error: { code: number } } = JSON.parse(data)
  return { result, error }
}
const start = (code: string, takesTasks = true) =>
  ask('tools/call', { name: 'run_code', arguments: { code } }, takesTasks)

it('gives a client that takes tasks a task for a program that goes on, and its state, result and end', async () => {
  await open(20)
  const { result: found } = await ask('server/discover', {})
  expect(found.capabilities).toMatchObject({ extensions: { [EXTENSION]: {} } })
  const { result: task } = await start('await new Promise((done) => setTimeout(done, 300)); [7]')
  expect(task).toMatchObject({
    ...{ resultType: 'task', taskId: expect.any(String), status: 'working', ttlMs: 86_400_000, pollIntervalMs: 2000 },
    ...{ createdAt: expect.stringMatching(/^\d{4}-/), lastUpdatedAt: expect.stringMatching(/^\d{4}-/) }
  })
  const { taskId } = task
  const state = async () => (await ask('tasks/get', { taskId })).result
  expect(await state()).toMatchObject({ resultType: 'complete', taskId })
  await expect.poll(async () => (await state()).status).toBe('completed')
  expect(await state()).toMatchObject({
    result: { resultType: 'complete', structuredContent: { status: 'completed', value: [7], runId: taskId } }
  })
  expect((await ask('tasks/update', { taskId, inputResponses: {} })).result).toMatchObject({ resultType: 'complete' })
})

it('cancels a task, and tells a failed program from a failed task', async () => {
  await open(20)
  const { taskId } = (await start(CODE)).result
  expect((await ask('tasks/cancel', { taskId })).result).toMatchObject({ resultType: 'complete' })
  expect((await ask('tasks/get', { taskId })).result).toMatchObject({ status: 'cancelled' })
  expect((await ask('tasks/cancel', { taskId })).result).toMatchObject({ resultType: 'complete' })
  const failing = (await start('await new Promise((done) => setTimeout(done, 100)); null.x')).result
  const state = async () => (await ask('tasks/get', { taskId: failing.taskId })).result
  await expect.poll(state).toMatchObject({ status: 'completed', result: { isError: true } })
})

it('knows a task only for its owner, and gives none to a client that does not take tasks', async () => {
  await open(20)
  const { taskId } = (await start(CODE)).result
  owner = 'another'
  for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel'])
    expect((await ask(method, { taskId })).error).toMatchObject({ code: -32602 })
  owner = 'local'
  expect((await ask('tasks/get', { taskId: 'unknown' })).error).toMatchObject({ code: -32602 })
  expect((await ask('tasks/get', { taskId }, false)).error).toMatchObject({ code: -32021 })
  for (const method of ['tasks/list', 'tasks/result'])
    expect((await ask(method, { taskId })).error).toMatchObject({ code: -32601 })
  const { result } = await start(CODE, false)
  expect(result).toMatchObject({ resultType: 'complete', structuredContent: { status: 'running' } })
})

it('answers a quick program at once', async () => {
  await open(20_000)
  const { result } = await start('1 + 1')
  expect(result).toMatchObject({ resultType: 'complete', structuredContent: { status: 'completed', value: 2 } })
})

it('keeps older clients as they were', async () => {
  await open(20)
  const client = new Client({ name: 'old', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(url))
  closers.push(() => client.close())
  const { structuredContent } = await client.callTool({ name: 'run_code', arguments: { code: CODE } })
  expect(structuredContent).toMatchObject({ status: 'running' })
})

it('gives the owner of a run the rest of a value and of its output', async () => {
  await open(20_000)
  const client = new Client({ name: 'old', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(url))
  closers.push(() => client.close())
  const run = async (args: Record<string, unknown>) => {
    const { structuredContent, content } = await client.callTool({ name: 'run_code', arguments: args })
    return { content, ...(structuredContent as Record<string, unknown>) } as Record<string, unknown>
  }
  const code = "console.log('y'.repeat(19_000)); Array.from({ length: 9000 }, () => 'a \u{1f600}')"
  const { runId, value, cut, logs } = await run({ code })
  expect(String(cut)).toContain(`run_code {"runId":"${runId}","from":${String(value).length}}`)
  expect(String(logs)).toContain(`{"runId":"${runId}","from":0,"of":"logs"}`)
  let whole = String(value)
  for (let next: unknown = whole.length; next !== undefined; ) {
    const piece = await run({ runId, from: next })
    whole += String(piece.text)
    next = piece.next
  }
  expect(JSON.parse(whole)).toEqual(Array(9000).fill('a \u{1f600}'))
  expect(await run({ runId, of: 'logs', from: 0 })).toMatchObject({ text: 'y'.repeat(19_000) })
  expect(JSON.stringify(await run({ runId, from: -1 }))).toContain('must be a whole number')
  owner = 'another'
  expect(JSON.stringify(await run({ runId, from: 0 }))).toContain('There is no run')
})
