import { execFileSync } from 'node:child_process'
import { existsSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterAll, describe, expect, it } from 'vitest'
import { child } from '../../server/connections/connections.fixture.ts'
import { packageRoot } from '../../server/lib/files/package-root.ts'
import { eventually } from '../support/eventually.ts'
import { serve, stopServers } from '../support/serve.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const everything = join(packageRoot(), 'node_modules/@modelcontextprotocol/server-everything/dist/index.js')

function writeRegistry(dataDir: string, approval: Record<string, string>): string {
  const file = join(dataDir, 'mcp.json')
  const server = { command: process.execPath, args: [everything], approval }
  writeFileSync(file, JSON.stringify({ mcpServers: { everything: server } }))
  return file
}

describe("an enabled server's tools in the chat", () => {
  afterAll(stopServers)

  it('are offered, shown for approval with their real name, run after approval, and gone with the server', async () => {
    const dataDir = temporaryFolder()
    const server = await serve({ MCP_CONFIG: writeRegistry(dataDir, { 'get-sum': 'deny' }) }, { dataDir })
    const client = server.connect('chat-servers')
    await client.ready()
    const from = client.seen.length
    await client.ask('message', 'use everything__echo {"message":"hello-42"}')
    const card = await client.wait('tool:approval_required', undefined, { from })
    expect(card).toMatchObject({ server: 'everything', name: 'echo', args: { message: 'hello-42' } })
    await client.ask('tool:approval', { callId: card.callId, approved: true, hash: card.hash })
    const result = await client.wait('tool:result', ({ callId }) => callId === card.callId)
    expect(JSON.stringify(result.content)).toContain('hello-42')
    await client.wait('turn:end', undefined, { from })

    // Calls that the registry denies are refused without a card.
    const later = client.seen.length
    await client.ask('message', 'use everything__get-sum {"a":1,"b":2}')
    const refused = await client.wait('tool:approval_resolved', undefined, { from: later })
    expect(refused).toMatchObject({ approved: false, by: 'policy' })
    await client.wait('turn:end', undefined, { from: later })
    expect(client.all('tool:started')).toHaveLength(1)

    await server.stop()
    await eventually('its child is gone', () => childCount() === 0)
  })

  it('are not called if the server came back with another definition than the approved one', async () => {
    const [dataDir, elsewhere] = [temporaryFolder(), temporaryFolder()]
    // The server needs its own folder, because it can't see the data folder.
    const [definition, notes] = [join(elsewhere, 'definition'), join(elsewhere, 'notes')]
    const file = join(dataDir, 'mcp.json')
    // It stops as soon as it is not needed.
    const changing = child('changing', [definition, notes], { idleSeconds: 0.1 })
    writeFileSync(file, JSON.stringify({ mcpServers: { notes: changing } }))
    writeFileSync(definition, 'Writes a note.')
    const server = await serve({ MCP_CONFIG: file }, { dataDir })
    const client = server.connect('chat-changing')
    await client.ready()
    await client.ask('message', 'use notes__note {"title":"approved"}')
    const card = await client.wait('tool:approval_required')
    await eventually('its child is gone', () => !running().includes(definition))
    writeFileSync(definition, 'Writes a note, and tells everyone.')
    await client.ask('tool:approval', { callId: card.callId, approved: true, hash: card.hash })
    const result = await client.wait('tool:result', ({ callId }) => callId === card.callId)
    expect(JSON.stringify(result)).toContain('is not the tool that was approved')
    expect(existsSync(notes)).toBe(false)
    await server.stop()
  })

  it('run in containers where the entry says so, which end with the server', async () => {
    const dataDir = temporaryFolder()
    const name = `boxed-${crypto.randomUUID().slice(0, 8)}`
    const modules = realpathSync(join(packageRoot(), 'node_modules'))
    const args = [join(modules, '@modelcontextprotocol/server-everything/dist/index.js')]
    const boxed = { command: 'node', args, sandbox: { folders: [modules] }, approval: { echo: 'allow' } }
    const file = join(dataDir, 'mcp.json')
    writeFileSync(file, JSON.stringify({ mcpServers: { [name]: boxed } }))
    const server = await serve({ MCP_CONFIG: file }, { dataDir })
    const client = server.connect('chat-boxed')
    await client.ready()
    await client.ask('message', `use ${name}__echo {"message":"from inside"}`)
    const result = await client.wait('tool:result')
    expect(JSON.stringify(result.content)).toContain('Echo: from inside')
    const containers = () =>
      execFileSync('docker', ['ps', '-aq', '--filter', `label=mcp-orchestrator.server=${name}`], { encoding: 'utf8' })
    expect(containers()).not.toBe('')
    await server.stop()
    await eventually('its container is gone', () => containers() === '')
  })

  it('are behind the four tools at /mcp too, for any MCP client', async () => {
    const dataDir = temporaryFolder()
    const server = await serve({ MCP_CONFIG: writeRegistry(dataDir, {}) }, { dataDir })
    const client = new Client({ name: 'test', version: '1' })
    await client.connect(new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`)))
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name).sort()).toEqual(['execute', 'explain_tool', 'find_tool', 'list_capabilities'])
    const call = { server: 'everything', tool: 'echo', params: { message: 'over http' } }
    const result = await client.callTool({ name: 'execute', arguments: call })
    expect(JSON.stringify(result.content)).toContain('over http')
    await client.close()
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
    const foreign = await fetch(`${server.url}/mcp`, {
      method: 'POST',
      body,
      headers: { ...headers, origin: 'https://evil.example' }
    })
    expect(foreign.status).toBe(403)
    await server.stop()
  })
})

function childCount(): number {
  return running()
    .split('\n')
    .filter((line) => line.endsWith(everything)).length
}

function running(): string {
  return execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' })
}
