import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client as McpClient, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterAll, expect, it } from 'vitest'
import { child } from '../../server/connections/connections.fixture.ts'
import { eventually } from '../support/eventually.ts'
import { serve, stopServers } from '../support/serve.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

afterAll(stopServers)

const CAUSE = 'Error: Cannot find the thing that it needs'

it('a server that does not start is reported once, in one line with the cause, and again when the cause changes', async () => {
  const [dataDir, elsewhere] = [temporaryFolder(), temporaryFolder()]
  const needed = join(elsewhere, 'needed')
  const file = join(dataDir, 'mcp.json')
  writeFileSync(file, JSON.stringify({ mcpServers: { sick: child('throws-on-start', [needed]) } }))
  // How many turns it takes until the server is tried again depends on the machine.
  const server = await serve(
    { MCP_CONFIG: file, MESSAGES_PER_MINUTE: '10000', COMMANDS_PER_MINUTE: '10000' },
    { dataDir }
  )
  const client = server.connect('broken')
  await client.ready()
  for (let turn = 0; turn < 4; turn++) await client.turn('hello')
  const notices = client.all('session:notice').filter(({ code }) => String(code).startsWith('tools_'))
  expect(notices).toMatchObject([{ code: 'tools_missing', servers: ['sick'] }])
  const message = String(notices[0]?.message)
  expect(message).toMatch(
    /^The server "sick" did not start: Error: Cannot find the thing that it needs \(.*\)\. See: mcp-orchestrator servers logs "sick"$/
  )
  expect(message).not.toMatch(/\n|\.ts:|node:internal| {2}at /)

  const { servers } = (await (await fetch(`${server.url}/api/servers`)).json()) as { servers: { lastError: unknown }[] }
  expect(servers[0]?.lastError).toMatchObject({ message })
  const mcp = new McpClient({ name: 'test', version: '1' })
  await mcp.connect(new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`)))
  const listed = await mcp.callTool({ name: 'list_capabilities', arguments: {} })
  expect(JSON.stringify(listed)).toContain(CAUSE)
  expect(JSON.stringify(listed)).not.toMatch(/throws-on-start\.ts:|in a row/)
  await mcp.close()

  writeFileSync(needed, '')
  await eventually('it is offered again', async () => {
    await client.turn('hello')
    return client.all('session:notice').some(({ code }) => code === 'tools_back')
  })
  await server.stop()
})
