/** The Inspector's command line, as anyone would use it to look at a server, at both doors of the gateway. */

import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { afterAll, describe, expect, it } from 'vitest'
import { createGatewayApp } from '../../server/app/app-gateway.ts'
import { loadSettings } from '../../server/config/load-settings.ts'
import { real } from '../../server/connections/connections.fixture.ts'
import { openHttpDoor } from '../../server/gateway/doors/http-door.ts'
import { packageRoot } from '../../server/lib/files/package-root.ts'
import { silentLogger } from '../../server/lib/logger.ts'
import { productArgs } from '../support/product.ts'
import { discard, temporaryFolder } from '../support/temporary-folder.ts'
import { textOf } from '../support/text-of.ts'

const INSPECTOR = join(packageRoot(), 'node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js')
const FOUR = ['execute', 'explain_tool', 'find_tool', 'list_capabilities']

const closers: (() => unknown)[] = []
afterAll(async () => {
  for (const close of closers.toReversed()) await close()
})

async function inspect(target: string[], method: string[]): Promise<Record<string, unknown>> {
  const args = [INSPECTOR, '--cli', ...target, '--method', ...method]
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 60_000 })
  return JSON.parse(stdout)
}

function registry(): { dir: string; config: string } {
  const dir = temporaryFolder()
  closers.push(() => discard(dir))
  const config = join(dir, 'mcp.json')
  writeFileSync(config, JSON.stringify({ mcpServers: { everything: real('server-everything') } }))
  return { dir, config }
}

/** The command that a client's own configuration file has for the gateway. */
function overStdio(): string[] {
  const { dir, config } = registry()
  const args = [...productArgs('gateway'), 'gateway', '--config', config]
  const gateway = { type: 'stdio', command: process.execPath, args, env: { DATA_DIR: join(dir, 'data') } }
  const file = join(dir, 'client.json')
  writeFileSync(file, JSON.stringify({ mcpServers: { gateway } }))
  return ['--config', file, '--server', 'gateway']
}

async function overHttp(): Promise<string[]> {
  const { dir, config } = registry()
  const settings = loadSettings({ env: { MCP_CONFIG: config, DATA_DIR: join(dir, 'data') } })
  const { PATH } = process.env
  const app = await createGatewayApp(settings, silentLogger, { environment: { PATH }, optionalRegistry: false })
  const door = openHttpDoor(app.gateway, app.version, silentLogger)
  const server = createServer(async (request, response) => {
    await door.handle(request, response, request.method === 'POST' ? await json(request) : undefined)
  })
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  closers.push(
    () => app.stop(),
    () => door.close(),
    () => server.close().closeAllConnections()
  )
  return [`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, '--transport', 'http']
}

describe('the Inspector', { timeout: 120_000 }, () => {
  it.each([
    ['stdio', overStdio],
    ['HTTP', overHttp]
  ])('lists and calls over %s', async (_door, open) => {
    const target = await open()
    const { tools } = await inspect(target, ['tools/list'])
    expect((tools as { name: string }[]).map(({ name }) => name).sort()).toEqual(FOUR)
    const asked = ['server=everything', 'tool=echo', 'params={"message":"hello"}'].flatMap((arg) => ['--tool-arg', arg])
    const answer = await inspect(target, ['tools/call', '--tool-name', 'execute', ...asked])
    expect(textOf(answer)).toBe('Echo: hello')
    expect(answer._meta).toMatchObject({ 'mcp-orchestrator/route': { server: 'everything', tool: 'echo' } })
  })
})
