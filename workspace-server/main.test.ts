import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { temporaryFolder } from '../tests/support/temporary-folder.ts'
import { FakeOwner, isRunning } from './fake-owner.ts'
import { MAX_LINE_BYTES, SERVER_EXIT } from './protocol.ts'

const owners: FakeOwner[] = []
const start = async (options?: Parameters<typeof FakeOwner.start>[0]) => {
  const owner = await FakeOwner.start(options)
  owners.push(owner)
  return owner
}

afterEach(async () => {
  await Promise.all(owners.splice(0).map((owner) => owner.stop()))
})

describe('with the official client', () => {
  it.each(['legacy', 'auto'] as const)('lists and calls tools in era mode %s', async (mode) => {
    const folder = temporaryFolder()
    mkdirSync(join(folder, 'root'))
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } })
    const main = fileURLToPath(new URL('./main.ts', import.meta.url))
    const args = [main, '--epoch', '1', '--root', join(folder, 'root'), '--state', join(folder, 'state')]
    await client.connect(new StdioClientTransport({ command: process.execPath, args }))
    const { tools } = await client.listTools()
    expect(tools.map((tool) => tool.name)).toEqual(['read_file', 'write_file', 'list_files', 'execute_command'])
    for (const tool of tools) {
      expect(tool.inputSchema.additionalProperties).toBe(false)
      expect(tool.outputSchema).toBeDefined()
      expect(tool.annotations?.readOnlyHint).toBe(['read_file', 'list_files'].includes(tool.name))
    }
    // The client validates structured results against the output schemas and throws if they are invalid.
    await client.callTool({ name: 'write_file', arguments: { path: 'a', content: 'x' } })
    await client.callTool({ name: 'read_file', arguments: { path: 'a' } })
    await client.callTool({ name: 'list_files', arguments: {} })
    const ran = await client.callTool({ name: 'execute_command', arguments: { command: 'echo hi; exit 3' } })
    expect(ran.structuredContent).toMatchObject({ exitCode: 3, stdout: 'hi\n' })
    await client.close()
    rmSync(folder, { recursive: true })
  })
})

describe('ownership', () => {
  it('exits when its owner leaves, and has touched its sign of life', async () => {
    const owner = await start()
    expect(existsSync(join(owner.state, 'alive'))).toBe(true)
    owner.child.stdin?.end()
    expect(await owner.exited).toBe(0)
  })

  it('kills running commands when its owner leaves', async () => {
    const owner = await start()
    owner.post('tools/call', { name: 'execute_command', arguments: { command: 'echo $$ > pid; exec sleep 1000' } })
    const pidFile = join(owner.root, 'pid')
    await vi.waitUntil(() => existsSync(pidFile))
    const pid = Number((await owner.call('read_file', { path: 'pid' })).content[0]?.text)
    owner.child.stdin?.end()
    await owner.exited
    await vi.waitUntil(() => !isRunning(pid))
  })

  it.each(['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR1'] as const)('goes on when a command sends it %s', async (signal) => {
    const owner = await start()
    owner.child.kill(signal)
    expect(await owner.run('echo still here')).toBe('still here\n')
  })

  it('is not blocked by a pipe that a command put in place of its sign of life', async () => {
    const folder = temporaryFolder()
    mkdirSync(join(folder, 'state'))
    execFileSync('mkfifo', [join(folder, 'state/alive')])
    const owner = await start({ folder })
    expect(await owner.run('echo alive')).toBe('alive\n')
  })

  it('exits even if a command has removed its state', async () => {
    const owner = await start()
    rmSync(owner.state, { recursive: true })
    owner.child.stdin?.end()
    expect(await owner.exited).toBe(0)
  })

  it('refuses to start below an epoch that was seen, and starts again with the same', async () => {
    const first = await start({ epoch: 7 })
    first.child.stdin?.end()
    await first.exited
    const stale = FakeOwner.spawn({ epoch: 6, folder: first.folder })
    expect(await stale.exited).toBe(SERVER_EXIT.staleEpoch)
    const again = await start({ epoch: 7, folder: first.folder })
    expect(await again.run('echo ok')).toBe('ok\n')
    expect(readdirSync(join(again.state, 'epochs'))).toEqual(['7'])
  })

  it('raises its epoch on a claim and refuses a lower one', async () => {
    const owner = await start({ epoch: 0 })
    expect((await owner.request('workspace/claim', { epoch: 1_790_000_000_000 })).error).toBeUndefined()
    const { error } = await owner.request('workspace/claim', { epoch: 5 })
    expect(error).toMatchObject({
      data: { code: 'stale_epoch' },
      message: expect.stringContaining('Epoch 5 is outdated')
    })
  })
})

describe('what an owner may send', () => {
  it('survives lines that are too long or not messages', async () => {
    const owner = await start()
    for (const line of [
      '',
      '{',
      'null',
      '[]',
      '42',
      '{"jsonrpc":"2.0"}',
      '{"jsonrpc":"2.0","id":{},"method":"x"}',
      '\0'
    ])
      owner.sendLine(line)
    owner.sendLine(`"${'x'.repeat(MAX_LINE_BYTES + 1)}"`)
    owner.sendLine('{"jsonrpc":"2.0","id":99,"result":{}}')
    expect(await owner.run('echo still here')).toBe('still here\n')
    expect(owner.stderr).toContain('was dropped: the limit is')
  })

  it('answers invalid requests with an error', async () => {
    const owner = await start()
    const ask = async (method: string, params: object) => (await owner.request(method, params)).error
    expect(await ask('tools/call', { name: 'nope', arguments: {} })).toMatchObject({ code: -32602 })
    expect(await ask('no/such', {})).toMatchObject({ code: -32601 })
    expect(await ask('workspace/claim', { epoch: -1 })).toMatchObject({ code: -32602 })
    expect(await ask('workspace/changes', {})).toMatchObject({ message: expect.stringContaining('"ack"') })
    expect(await ask('workspace/fetch', { path: '../x', offset: 0, length: 1 })).toMatchObject({ code: -32602 })
    expect(
      await ask('workspace/restore', { entries: [{ path: 'x', type: 'fifo', mode: 0, mtimeMs: 0 }] })
    ).toBeDefined()
    expect(await owner.run('echo ok')).toBe('ok\n')
  })

  it('handles 5,000 requests at once, some of them cancelled', async () => {
    const owner = await start()
    const posted = Array.from({ length: 5000 }, () => owner.post('tools/call', { name: 'list_files', arguments: {} }))
    const cancelled = Array.from({ length: 1500 }, () => owner.post('ping', {}))
    for (const { id } of cancelled)
      owner.sendLine(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } }))
    await Promise.all(posted.map(({ answer }) => answer))
    expect(await owner.run('echo ok')).toBe('ok\n')
  })

  it('shows its limits', async () => {
    const owner = await start()
    const limits = await owner.result<Record<string, unknown>>('workspace/limits')
    expect(limits).toMatchObject({ uid: process.getuid?.(), interfaces: expect.arrayContaining(['lo']) })
    expect(limits.workspaceBytes).toBeGreaterThan(0)
  })
})
