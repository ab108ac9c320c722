import { rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { loadSettings } from '../../config/load-settings.ts'
import { child } from '../../connections/connections.fixture.ts'
import { messageOf } from '../../lib/errors.ts'
import { checkServers } from './doctor-servers.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

async function diagnose(registry: string | Record<string, unknown> | undefined, wantsStart = false) {
  const dir = temporaryFolder()
  closers.push(() => rmSync(dir, { recursive: true, force: true }))
  const file = join(dir, 'mcp.json')
  const text = typeof registry === 'string' ? registry : JSON.stringify({ mcpServers: registry })
  if (registry !== undefined) writeFileSync(file, text)
  const said: string[] = []
  const settings = loadSettings({ env: { MCP_CONFIG: file, DATA_DIR: dir } })
  await checkServers(
    settings,
    async (part, job) => {
      const found = await job().then(
        (line) => ({ ok: true, line }),
        (error) => ({ ok: false, line: messageOf(error) })
      )
      said.push(`${found.ok ? 'ok' : 'FAILS'} ${part} ${found.line}`)
      return found.ok
    },
    wantsStart
  )
  return said
}

it('reports a working folder that does not exist', async () => {
  const [said] = await diagnose({ a: { ...child('steady'), cwd: '/nowhere/at/all' } })
  expect(said).toMatch(/^FAILS server .*create \/nowhere\/at\/all/)
})

it('reports what each server lacks, and starts none', async () => {
  const http = createServer((_request, response) => response.writeHead(405).end()).listen(0, '127.0.0.1')
  closers.push(() => http.close())
  await new Promise((ready) => http.once('listening', ready))
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`
  const said = await diagnose({
    fine: { command: 'node' },
    gone: { command: 'no-such-command' },
    off: { command: 'no-such-command', enabled: false },
    keyless: { command: 'node', env: { A: ['$', '{secret:NOT_THERE}'].join('') } },
    bad: { command: 7 },
    far: { url },
    farther: { url: 'http://127.0.0.1:9/mcp' }
  })
  expect(said).toEqual([
    expect.stringMatching(/^FAILS server .*line 1: server "bad": "command" must be/),
    expect.stringMatching(/^ok server fine: \/.*node$/),
    'FAILS server "gone" needs the command "no-such-command", which is not on the PATH: install it, or correct mcp.json.',
    'ok server off: switched off',
    expect.stringMatching(/^FAILS server .*"keyless" needs .*NOT_THERE/),
    `ok server far: ${url} answers (405)`,
    expect.stringMatching(/^FAILS server "farther" can't be reached/)
  ])
})

it('starts them if requested, and reports what is wrong with the file', async () => {
  const said = await diagnose({ fine: child('steady'), sick: child('crash-on-start') }, true)
  expect(said).toEqual([
    expect.stringMatching(/^ok server fine: .*; \d+ tools$/),
    expect.stringMatching(/^FAILS server The server "sick" did not start/)
  ])
  expect(await diagnose('{"mcpServers": ')).toEqual([expect.stringMatching(/^FAILS servers .*line 1/)])
  expect(await diagnose(undefined)).toEqual([expect.stringMatching(/^ok servers none in /)])
})
