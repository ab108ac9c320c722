/** Signals: what a process of the same user can do to ours with them. */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { temporaryFolder } from '../support/temporary-folder.ts'

const bin = resolve(import.meta.dirname, '../../bin/mcp-orchestrator')
const started: ChildProcess[] = []
afterEach(async () => {
  const ended = started.map((child) => (child.exitCode ?? child.signalCode) !== null || once(child, 'exit'))
  for (const child of started.splice(0)) child.kill('SIGKILL')
  await Promise.all(ended)
})

const SIGUSR1_BIT = 1n << 9n

function caughtBy(pid: number | undefined): bigint {
  const [, mask = ''] = /^SigCgt:\s+([0-9a-f]+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1')) ?? []
  return BigInt(`0x${mask}`)
}

describe.runIf(process.platform === 'linux')('a signal that makes Node open a debugger', { timeout: 120_000 }, () => {
  // Checked: without `--disable-sigusr1`, Node catches the signal, and a debugger listens on port 9229.
  it.each([
    ['gateway', (dir: string) => ['gateway', '--config', join(dir, 'mcp.json')]],
    ['serve', (dir: string) => ['serve', '--port', '0', '--config', join(dir, 'mcp.json')]],
    ['engine-proxy', (dir: string) => ['engine-proxy', '--listen', join(dir, 'engine.sock')]]
  ])('has no effect on %s', async (_name, words) => {
    const dir = temporaryFolder()
    writeFileSync(join(dir, 'mcp.json'), '{"mcpServers":{}}')
    const { PATH = '', HOME = '' } = process.env
    const env = { PATH, HOME, XDG_CONFIG_HOME: dir, DATA_DIR: join(dir, 'data'), LLM_PROVIDER: 'demo' }
    const child = spawn(bin, words(dir), { cwd: dir, env, stdio: ['pipe', 'pipe', 'pipe'] })
    started.push(child)
    let said = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk) => {
        said += chunk
      })
    }
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })}\n`)
    // Each says something once it runs: Node has long decided by then what it does on this signal.
    await expect.poll(() => said, { timeout: 60_000 }).toMatch(/is at http|listens at|"id":1/)
    expect(caughtBy(child.pid) & SIGUSR1_BIT).toBe(0n)
    child.kill('SIGUSR1')
    child.kill('SIGTERM')
    await once(child, 'exit')
    expect(said).not.toMatch(/debugger|inspector/i)
  })
})
