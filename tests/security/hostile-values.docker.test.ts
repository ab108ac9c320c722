/** Values that no page would send, in every field of HTTP, of the socket and of /mcp: each is refused clearly, or stored as it was sent. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { COMMAND_SCHEMAS } from '../../contract/commands.ts'
import { browserOf } from '../support/browser-owner.ts'
import type { Client } from '../support/client.ts'
import { type Served, serve, stopServers } from '../support/serve.ts'

let server: Served
const id = `hostile-${randomUUID()}`
// With tokens, the server does not have to find out which program sends each request.
const accessToken = 'an access token of some length'
const adminToken = 'another token, of administrators'
const me = () => ({
  ...browserOf('hostile', server.url).headers,
  authorization: `Bearer ${accessToken}`,
  'x-admin-token': adminToken,
  accept: 'application/json, text/event-stream'
})
beforeAll(async () => {
  const many = '100000'
  server = await serve({
    ...{ REQUESTS_PER_MINUTE: many, COMMANDS_PER_MINUTE: many, MESSAGES_PER_MINUTE: many },
    ...{ AUTH_TOKEN: accessToken, ADMIN_TOKEN: adminToken, MCP_REQUESTS_PER_MINUTE: many }
  })
})
afterAll(stopServers)

/** As JSON: what can't be written in another way too. */
const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`
const VALUES = {
  surrogate: '"a\\ud800b"',
  nul: '"a\\u0000b"',
  bidi: '"a\\u202eb\\ufeff"',
  long: JSON.stringify('x'.repeat(300_000)),
  deep: nested(5000),
  proto: '{"__proto__": {"x": 1}, "constructor": 1, "toString": null}',
  number: '1e308',
  negative: '-1',
  null: 'null',
  list: '[1, null, "x"]'
}

/** The sample once for each of its values, with that one replaced. */
function* variants(sample: unknown, value: string): Generator<string> {
  yield value
  if (typeof sample !== 'object' || sample === null) return
  for (const [key, part] of Object.entries(sample)) {
    for (const inner of variants(part, value)) {
      const rest = Object.entries(sample).filter(([name]) => name !== key)
      const parts = rest.map(([name, other]) => `${JSON.stringify(name)}:${JSON.stringify(other)}`)
      yield Array.isArray(sample) ? `[${inner}]` : `{${[...parts, `${JSON.stringify(key)}:${inner}`].join(',')}}`
    }
  }
}

const target = { path: '/workspace/a', is: 'file', bytes: 1, hash: 'a'.repeat(64), throughLink: true, problem: 'x' }
const message = { text: 'hello', id: 'm', attachments: [{ id: 'a', name: 'a.txt' }] }
const COMMANDS: Record<keyof typeof COMMAND_SCHEMAS, unknown> = {
  message,
  'tool:approval': {
    ...{ callId: 'c', approved: true, hash: 'h', args: { a: 'x' }, target, seen: 'a'.repeat(64), reason: 'r' },
    ...{ choices: { a: 'mine' }, remember: true }
  },
  'tool:target': { callId: 'c', args: { path: 'a' } },
  'tool:answer': { callId: 'c', id: 'q', action: 'accept', values: { a: 'x' } },
  'turn:cancel': {},
  'turn:retry': { turnId: 't1' },
  'history:reset': {},
  'history:rewind': { from: 1, message },
  'history:restore': { of: 1 },
  'model:select': { model: 'demo/demo', history: 'keep', maxCancelled: 1 },
  'session:configure': { instructions: 'x', temperature: 1, effort: 'low' },
  'tool:revoke': { server: 's', name: 'n' },
  'limit:raise': {},
  'session:snapshot': {},
  'mode:select': { mode: 'ask' },
  'review:decide': { reviewId: 'r', hash: 'h', accepted: ['a'], choices: { a: 'mine' } },
  'files:revert': { changeId: 'c', scope: 'one', hash: 'h', choices: { a: 'mine' } }
}

const session = `/api/sessions/${id}`
const BODIES: [string, string, unknown][] = [
  ['PATCH', session, { title: 'a', isPinned: true, isArchived: false }],
  ['POST', `${session}/branch`, { before: 1, files: 'now' }],
  ['POST', `${session}/folder`, { path: 'a' }],
  ['POST', `${session}/move`, { from: 'a', to: 'b' }],
  [
    'POST',
    '/api/sessions/import',
    { summary: { title: 'a' }, conversation: { entries: [{ kind: 'user', text: 'a' }] } }
  ],
  ['PUT', '/api/instructions', { text: 'a' }],
  ['POST', '/api/approvals/x', { decision: 'approve', hash: 'h', reason: 'r' }],
  ['POST', '/api/runs/x/cancel', {}],
  ['POST', '/api/servers', { text: 'a', moveSecrets: true, confirm: 'x' }],
  ['POST', '/api/servers', { mcpServers: { a: { command: 'x', args: ['a'], env: { A: 'b' }, cwd: '/', url: 'x' } } }],
  ['PUT', '/api/servers/x', { version: 'x', name: 'x', entry: { command: 'x' } }],
  ['PUT', '/api/servers/x/rules', { tool: 'x', before: {}, after: { rule: 'deny', isReadOnly: true } }],
  ['POST', '/api/servers/x/call', { tool: 'x', args: { a: 1 }, definition: 'x', isConfirmed: true }],
  ['POST', '/api/servers/x/resource', { uri: 'x:y' }],
  ['POST', '/api/servers/x/prompt', { name: 'x', arguments: { a: 'b' } }],
  ['POST', '/api/servers/x/accept', { hash: 'x' }],
  ['PUT', '/api/providers/openai/key', { apiKey: 'x' }],
  ['POST', '/api/login', { token: 'x' }],
  ...['execute', 'find_tool', 'list_servers', 'describe_tool'].map((name): [string, string, unknown] => {
    const args = { request: 'say hello', server: 's', tool: 't', params: { a: 1 }, limit: 1 }
    return ['POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }]
  })
]

const TEXTS = ['%00', 'a%00b', '%ed%a0%80', '%', '%zz', '%e2%80%ae', 'x'.repeat(6000), '..%2f..%2f', '__proto__', '-1']
const PLACES = [
  ...['title', 'before', 'limit', 'waiting', 'archived'].map((name) => `/api/sessions?${name}=`),
  '/api/search?q=',
  ...['path', 'x'].flatMap((name) => [`${session}/files?${name}=`, `${session}/file?${name}=`]),
  ...['before', 'limit'].flatMap((name) => [`${session}/changes?${name}=`, `${session}/entries?${name}=`]),
  ...[`${session}/changes/`, `${session}/calls/`, `${session}/attachments/`, `${session}/export?format=`],
  ...[`${session}/changes/x/revert?scope=`, `${session}/changes/x/content?side=before&path=`],
  ...[
    '/api/sessions/',
    '/api/servers/',
    '/api/servers/x/tools/',
    '/api/audit?text=',
    '/api/audit?from=',
    '/api/audit?tool='
  ]
]

interface Answer {
  status: number
  text: string
}

async function send(method: string, path: string, body?: string): Promise<Answer> {
  const type: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' }
  const init = body === undefined ? {} : { body }
  const answer = await fetch(server.url + path, { method, ...init, headers: { ...type, ...me() } })
  return { status: answer.status, text: await answer.text() }
}

async function open(sessionId = id): Promise<Client> {
  const client = server.connect(sessionId, { browser: 'hostile', accessToken })
  await client.snapshot()
  return client
}

// Checked: without `refuseDeep`, nested servers are answered with 500, and so is an edit before the first mcp.json exists.
it('get no error of the server over HTTP, whichever field has them', async () => {
  await open()
  const wrong: unknown[] = []
  const check = ({ status, text }: Answer, ...what: string[]) => {
    if (status >= 500) wrong.push([...what.map((each) => each.slice(0, 200)), status, text.slice(0, 200)])
  }
  for (const [method, path, sample] of BODIES)
    for (const [name, value] of Object.entries(VALUES)) {
      const bodies = [...variants(sample, value)]
      await Promise.all(bodies.map(async (body) => check(await send(method, path, body), method, path, name, body)))
    }
  for (const place of PLACES)
    await Promise.all(TEXTS.map(async (text) => check(await send('GET', place + text), place, text)))
  expect(wrong).toEqual([])
  expect(server.child.exitCode).toBeNull()
}, 120_000)

it('get an answer to every command of the socket', async () => {
  const client = await open()
  const wrong: unknown[] = []
  for (const [command, sample] of Object.entries(COMMANDS))
    for (const [name, value] of Object.entries({ ...VALUES, deep: nested(500) }))
      for (const body of variants(sample, value)) {
        const ack = (await client.ask(command, JSON.parse(body))) as { ok: boolean; error?: { code: string } }
        if (ack.error?.code === 'internal') wrong.push([command, name, body.slice(0, 200), ack.error])
      }
  expect(wrong).toEqual([])
  expect(client.socket.connected).toBe(true)
}, 120_000)

it('are stored as they were sent, or refused', async () => {
  const own = `stored-${randomUUID()}`
  const client = await open(own)
  const texts = ['a\ud800b', 'a\0b', 'a\u202e\ufeffb', '\udc00', '__proto__', 'e\u0301'.repeat(30)]
  for (const text of texts) {
    const from = client.seen.length
    expect([text, await client.ask('message', text)]).toMatchObject([text, { ok: true }])
    expect([text, (await client.wait('user:message', undefined, { from })).text]).toEqual([text, text])
    await client.wait('turn:end', undefined, { from })
    const stored = (await server.events(own)).findLast(({ type }) => type === 'user:message')
    expect([text, stored?.data.text]).toEqual([text, text])
    const { status, text: reply } = await send('PATCH', `/api/sessions/${own}`, JSON.stringify({ title: text }))
    if (status === 200) expect([text, JSON.parse(reply).title]).toEqual([text, text])
    else expect([text, status]).toEqual([text, 400])
    const kept = await send('PUT', '/api/instructions', JSON.stringify({ text }))
    if (kept.status === 200)
      expect([text, JSON.parse((await send('GET', '/api/instructions')).text).text]).toEqual([text, text])
    else expect([text, kept.status]).toEqual([text, 400])
  }
}, 60_000)
