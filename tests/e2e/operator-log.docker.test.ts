/** Tests what an operator can see about one person's session, in the log and in `/metrics`. */
import { afterEach, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { type Served, serve, stopServers } from '../support/serve.ts'

afterEach(stopServers)

interface Line {
  msg: string
  [field: string]: unknown
}

function lines(server: Served, msg?: string): Line[] {
  const all = server
    .log()
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line)
  return msg === undefined ? all : all.filter((line) => line.msg === msg)
}

async function metric(server: Served, name: string): Promise<number | undefined> {
  const text = await (await fetch(`${server.url}/metrics`)).text()
  const line = text.split('\n').find((each) => each.startsWith(`mcp_orchestrator_${name} `))
  return line === undefined ? undefined : Number(line.split(' ').at(-1))
}

it('follows a session from its opening to the end of its connection, with every failure, code and duration', async () => {
  const server = await serve({ LOG_LEVEL: 'info', MAX_SESSIONS: '1' })
  const client = server.connect('followed')
  await client.ready()
  await client.turn('read no-such-file.txt')
  const [card] = await client.cards('run sleep 600')
  await client.ask('tool:approval', { callId: card?.callId, approved: true })
  await client.wait('tool:started', ({ callId }) => callId === card?.callId)

  // The only sandbox is in use, so the calls of others are refused.
  const other = server.connect('other')
  await other.ready()
  await other.turn('run true')
  expect(await metric(server, 'refusals_total{face="chat",code="too_many_sessions"}')).toBeGreaterThan(0)
  expect(lines(server, 'Tool call did not begin.').find(({ sessionId }) => sessionId === 'other')).toMatchObject({
    server: 'workspace',
    tool: 'execute_command',
    code: 'too_many_sessions',
    ms: expect.any(Number)
  })

  for (let i = 0; i < 20; i++) await client.ask('no:such:command')
  expect(lines(server, 'Command refused.')).toHaveLength(1)
  expect(await metric(server, 'refusals_total{face="socket",code="unknown_command"}')).toBe(20)

  await client.ask('turn:cancel')
  await client.wait('turn:end', ({ reason }) => reason === 'cancelled')
  client.close()
  await eventually('the end is in the log', () => lines(server, 'Disconnected from the session.').length > 0)

  const own = lines(server).filter(({ sessionId }) => sessionId === 'followed')
  expect(new Set(own.map(({ instance }) => instance)).size).toBe(1)
  const [opened] = own.filter(({ msg }) => msg === 'Connected to the session.')
  const [closed] = own.filter(({ msg }) => msg === 'Disconnected from the session.')
  expect(closed).toMatchObject({
    connection: opened?.connection,
    reason: expect.stringMatching(/client/),
    ms: expect.any(Number)
  })
  const failed = own.filter(({ msg }) => msg === 'Tool call failed.')
  expect(failed).toHaveLength(1)
  expect(failed[0]).toMatchObject({
    turnId: expect.any(String),
    callId: expect.any(String),
    server: 'workspace',
    tool: 'read_file',
    code: 'tool_error',
    ms: expect.any(Number)
  })
  expect(own.filter(({ msg }) => msg === 'Tool call cancelled.')).toHaveLength(1)
  await server.stop()
  expect(lines(server, 'Command refused.').map(({ repeated }) => repeated)).toEqual([undefined, 19])
})

it('counts the refusals of every face, writes a flood of them once, and shows what is used of each limit', async () => {
  const server = await serve({
    LOG_LEVEL: 'info',
    AUTH_TOKEN: 'an access token of some length',
    MCP_REQUESTS_PER_MINUTE: '2'
  })
  const headers = { authorization: 'Bearer an access token of some length' }
  const read = async (name: string) => {
    const text = await (await fetch(`${server.url}/metrics`, { headers })).text()
    return Number(
      text
        .split('\n')
        .find((line) => line.startsWith(`mcp_orchestrator_${name} `))
        ?.split(' ')
        .at(-1)
    )
  }
  for (let i = 0; i < 5; i++) {
    expect((await fetch(`${server.url}/api/models`)).status).toBe(401)
    const refused = server.connect(`stranger-${i}`)
    expect(await refused.refused()).toBe('unauthorized')
  }
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'explain_tool', arguments: {} } }
  const accept = 'application/json, text/event-stream'
  const call = () =>
    fetch(`${server.url}/mcp`, {
      method: 'POST',
      headers: { ...headers, accept, 'content-type': 'application/json', 'mcp-protocol-version': '2025-06-18' },
      body: JSON.stringify(body)
    })
  expect((await call()).status).toBe(200)
  expect((await call()).status).toBe(200)
  for (let i = 0; i < 3; i++) expect((await call()).status).toBe(429)
  await fetch(`${server.url}/api/nothing`, { headers })

  expect(await read('refusals_total{face="http",code="unauthorized"}')).toBe(5)
  expect(await read('refusals_total{face="socket",code="unauthorized"}')).toBe(5)
  expect(await read('refusals_total{face="mcp",code="invalid_request"}')).toBe(2)
  expect(await read('refusals_total{face="mcp",code="too_fast"}')).toBe(3)
  expect(await read('refusals_total{face="http",code="not_found"}')).toBe(1)
  for (const msg of ['Request refused.', 'Connection refused.'])
    expect(lines(server, msg).filter(({ code }) => code === 'unauthorized')).toHaveLength(1)
  expect(lines(server, 'Request refused.').filter(({ code }) => code === 'too_fast')).toHaveLength(1)

  expect(await read('deployment_stored_sessions')).toBe(0)
  expect(await read('deployment_stored_sessions_limit')).toBe(20_000)
  expect(await read('deployment_log_bytes')).toBe(0)
  expect(await read('deployment_log_limit_bytes')).toBe(10_240 * 1024 * 1024)
  expect(await read('deployment_files_bytes')).toBe(0)
  expect(await read('deployment_files_limit_bytes')).toBe(51_200 * 1024 * 1024)
})
