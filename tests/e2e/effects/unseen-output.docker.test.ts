/** Seen from outside (vendor, files, API): nothing that a call did in a fork reaches anyone before it is kept. */
import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest'
import { startAnthropicServer } from '../../fixtures/model-servers/anthropic-server.ts'
import type { RecordedRequest, ScriptedReply } from '../../fixtures/model-servers/model-reply.ts'
import type { ScriptedServer } from '../../fixtures/model-servers/scripted-server.ts'
import { TEST_KEY } from '../../fixtures/model-servers/wires.ts'
import { browserOf } from '../../support/browser-owner.ts'
import type { Client } from '../../support/client.ts'
import { type Served, serve, stopServers } from '../../support/serve.ts'

/** The command computes them, so its own text does not contain them. */
const UNSEEN = /unseen-42|made-42/
const COMMAND = 'echo unseen-$((40+2)) | tee made-$((40+2)).txt'
const model = (id: string) => ({ type: 'model', id, display_name: id, created_at: '2026-01-01' })

let vendor: ScriptedServer
let server: Served
let client: Client
let id: string
let browser: string

/** Calls the command once for each message "go", and says a word to everything else. A title is asked for without tools. */
function answer({ body }: RecordedRequest): ScriptedReply {
  const { messages = [], tools = [] } = body as { messages?: { role: string; content: unknown }[]; tools?: unknown[] }
  const last = JSON.stringify(messages.at(-1)?.content ?? '')
  if (tools.length === 0 || !/\bgo\b/.test(last) || last.includes('tool_result')) return { text: 'ok' }
  const args = JSON.stringify({ command: COMMAND })
  return { toolCalls: [{ id: `call-${randomUUID()}`, name: 'execute_command', args }] }
}

beforeEach(async () => {
  vendor = await startAnthropicServer({ otherwise: answer, models: [model('claude-a'), model('claude-b')] })
  const access = { LLM_PROVIDER: 'anthropic', ANTHROPIC_API_KEY: TEST_KEY, ANTHROPIC_BASE_URL: vendor.url }
  server = await serve({ ...access, LLM_MODEL: 'claude-a', APPROVAL_MODE: 'preview', WARM_POOL_SIZE: '1' })
  id = `unseen-${randomUUID()}`
  browser = randomUUID()
  client = server.connect(id, { browser })
  await client.snapshot()
})
afterEach(async () => {
  await server.stop()
  await vendor.close()
})
afterAll(stopServers)

const http = (path: string, init: RequestInit = {}) =>
  fetch(`${server.url}/api/${path}`, {
    ...init,
    headers: { ...browserOf(browser, server.url).headers, 'content-type': 'application/json' }
  })
const sentToVendor = () => JSON.stringify(vendor.requests.map(({ body }) => body))

/** Sends "go" and waits for what it did in the fork. */
async function previewed(): Promise<{ callId: string; hash: string }> {
  const from = client.seen.length
  expect(await client.ask('message', 'go')).toMatchObject({ ok: true })
  const data = await client.wait('tool:previewed', undefined, { from })
  expect(JSON.stringify(data)).toMatch(UNSEEN)
  return { callId: String(data.callId), hash: String(data.hash) }
}

async function says(tab: Client, text: string): Promise<void> {
  const from = tab.seen.length
  const ack = await tab.ask('message', text)
  expect(ack).toMatchObject({ ok: true })
  await tab.wait('turn:end', ({ turnId }) => turnId === ack.turnId, { from })
}

/** Everything that others can read of a session. */
async function readable(sessionId: string): Promise<string> {
  const paths = ['export?format=md', 'export?format=json', 'export?format=html', 'files', 'changes']
  const replies = await Promise.all([
    ...paths.map((path) => http(`sessions/${sessionId}/${path}`)),
    http('sessions'),
    http('audit')
  ])
  for (const { status } of replies) expect(status).toBe(200)
  return (await Promise.all(replies.map((reply) => reply.text()))).join('\n')
}

// Checked: without the two filters, the export as JSON and the log of a branch have it.
it('is in no export, search, list, log, title or branch, and nowhere in what the vendor gets', async () => {
  const other = server.connect(`other-${randomUUID()}`, { browser })
  await other.snapshot()
  await says(client, 'hello')
  const { callId, hash } = await previewed()
  expect(await readable(id)).not.toMatch(UNSEEN)
  const search = (await (await http('search?q=unseen-42')).json()) as { hits: unknown[] }
  expect(search.hits).toEqual([])

  // An event after the preview, so that the branch has the preview in its past.
  expect(await client.ask('mode:select', { mode: 'ask' })).toMatchObject({ ok: true })
  const { seq } = await client.wait('mode:selected', ({ mode }) => mode === 'ask')
  const reply = await http(`sessions/${id}/branch`, {
    method: 'POST',
    body: JSON.stringify({ before: seq, files: 'now' })
  })
  expect(reply.status).toBe(201)
  const branch = (await reply.json()) as { sessionId: string }
  const copy = server.connect(branch.sessionId, { browser })
  expect(JSON.stringify(await copy.snapshot())).not.toMatch(UNSEEN)
  expect(JSON.stringify(await server.events(branch.sessionId))).not.toMatch(UNSEEN)
  await says(copy, 'and now?')
  expect(await readable(branch.sessionId)).not.toMatch(UNSEEN)

  expect(JSON.stringify(other.seen)).not.toMatch(UNSEEN)
  expect(sentToVendor()).not.toMatch(UNSEEN)
  expect(server.log()).not.toMatch(UNSEEN)
  // The check can find it: once it is kept, all of them have it.
  await client.ask('tool:approval', { callId, approved: true, hash })
  await client.wait('tool:result', (data) => data.callId === callId)
  await client.wait('turn:end', ({ turnId }) => turnId === 't2')
  expect(sentToVendor()).toMatch(UNSEEN)
  expect(await readable(id)).toMatch(UNSEEN)
})

it('is not told by a retry, a switch of the model, a rewind or a discard', async () => {
  await previewed()
  expect(await client.ask('turn:cancel')).toMatchObject({ ok: true })
  let from = client.seen.length
  expect(await client.ask('turn:retry')).toMatchObject({ ok: true })
  await client.wait('tool:previewed', undefined, { from })
  expect(await client.ask('model:select', { model: 'anthropic/claude-b', history: 'keep' })).toMatchObject({ ok: true })
  await says(client, 'hello')
  const { callId, hash } = await previewed()
  from = client.seen.length
  await client.ask('tool:approval', { callId, approved: false, hash, reason: 'not this' })
  await client.wait('turn:end', undefined, { from })
  const { transcript } = await server.connect(id, { browser }).snapshot()
  const [first] = transcript.entries.filter(({ kind }) => kind === 'user')
  const ack = await client.ask('history:rewind', { from: first?.seq, message: { text: 'instead', id: 'm' } })
  await client.wait('turn:end', ({ turnId }) => turnId === ack.turnId)
  expect(sentToVendor()).toContain('not this')
  expect(sentToVendor()).not.toMatch(UNSEEN)
  expect(await readable(id)).not.toMatch(UNSEEN)
})
