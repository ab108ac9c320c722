import { execFile } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { child } from '../../server/connections/connections.fixture.ts'
import { serve, stopServers } from '../support/serve.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const suite = resolve(import.meta.dirname, '../../node_modules/@modelcontextprotocol/conformance/dist/index.js')
const dir = temporaryFolder()
afterAll(async () => {
  await stopServers()
  rmSync(dir, { recursive: true, force: true })
})

/** The official suite's own verdict: its exit code counts scored scenarios alone. */
async function run(url: string, revision: string): Promise<{ code: number; failed: string[]; said: string }> {
  const args = [suite, 'server', '--url', `${url}/mcp`, '--requirements', revision]
  return new Promise((done) => {
    execFile(process.execPath, args, { cwd: dir, maxBuffer: 64 * 1024 * 1024 }, (error, said) => {
      // Scenarios without a score are listed once more at the end, with the reason.
      const unscored = new Set([...said.matchAll(/✗ ([\w-]+) \(/g)].map(([, name]) => name))
      const failed = [...said.matchAll(/✗ ([\w-]+): /g)].flatMap(([, name = '']) => (unscored.has(name) ? [] : [name]))
      done({ code: Number(error?.code ?? 0), failed, said })
    })
  })
}

describe('conformance of the pass-through mode, over HTTP onto a child over stdio', { timeout: 240_000 }, () => {
  it.each([
    ['2025-11-25', 'a child of the new revision', []],
    ['2026-07-28', 'a child of the new revision', []],
    ['2025-11-25', 'a child of the older revisions', ['legacy']]
  ])('%s, %s', async (revision, _child, childArgs) => {
    const config = join(dir, `${crypto.randomUUID()}.json`)
    writeFileSync(config, JSON.stringify({ mcpServers: { everything: child('conformance-server', childArgs) } }))
    const { url, stop } = await serve({ MCP_CONFIG: config, GATEWAY_EXPOSE: 'everything' })
    const { failed, said, code } = await run(url, revision)
    expect(failed, said.slice(-5000)).toEqual([])
    expect(said).toMatch(/Total: \d\d+ passed/)
    expect(code).toBe(0)
    await stop()
  })
})
