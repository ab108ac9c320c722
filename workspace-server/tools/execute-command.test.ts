import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { FakeOwner, isRunning } from '../fake-owner.ts'

let owner: FakeOwner
const run = async (command: string, args: object = {}) =>
  (await owner.call('execute_command', { command, ...args })).structuredContent
const pidIn = async (name: string) => {
  const file = join(owner.root, name)
  return vi.waitUntil(() => existsSync(file) && Number(readFileSync(file, 'utf8')))
}
const isGone = (pid: number) => vi.waitUntil(() => !isRunning(pid))

beforeAll(async () => {
  owner = await FakeOwner.start({ env: { SECRET_OF_SERVER: 'x' } })
})
afterAll(() => owner.stop())

describe('results', () => {
  it('reports output and exit code of each kind of ending', async () => {
    expect(await run('echo out; echo err >&2; exit 3')).toMatchObject({
      exitCode: 3,
      signal: null,
      timedOut: false,
      stdout: 'out\n',
      stderr: 'err\n'
    })
    expect(await run('kill -9 $$')).toMatchObject({ exitCode: null, signal: 'SIGKILL', timedOut: false })
    expect((await owner.call('execute_command', { command: 'false' })).isError).toBeFalsy()
    expect(await run('echo "unbalanced')).toMatchObject({ exitCode: 2 })
    expect(await run('no-such-program')).toMatchObject({ exitCode: 127 })
  })

  it('lets commands open their own output again', async () => {
    expect(await run('echo out > /dev/stdout; echo err > /dev/stderr')).toMatchObject({
      stdout: 'out\n',
      stderr: 'err\n'
    })
  })

  it('uses the given environment, folder and input', async () => {
    await owner.run('mkdir -p sub')
    expect(await run('pwd; cat', { cwd: 'sub', stdin: 'given' })).toMatchObject({
      stdout: `${join(owner.root, 'sub')}\ngiven`
    })
    expect(await run('cat')).toMatchObject({ stdout: '', exitCode: 0 })
    const names = (await owner.run('env | cut -d= -f1 | sort')).trim().split('\n')
    expect(names).toEqual(expect.arrayContaining(['HOME', 'LANG', 'PATH', 'TERM', 'TMPDIR']))
    expect(names).not.toContain('SECRET_OF_SERVER')
    expect(await run('true', { stdin: 'x'.repeat(1_000_000) })).toMatchObject({ exitCode: 0 })
  })

  // Checked: without the limit, the result is too long for a message.
  it('keeps head and tail of huge output and counts the rest', async () => {
    const { stdout, stdoutOmittedBytes } = await run('echo start; yes € | head -n 2000000; echo end')
    expect(stdout).toMatch(/^start\n€\n/)
    expect(stdout).toMatch(/€\nend\n$/)
    const text = String(stdout)
    expect(text).not.toContain('\ufffd')
    const kept = Buffer.byteLength(text.replace(/\n\[… \d+ bytes left out …\]\n/, ''))
    expect(kept + Number(stdoutOmittedBytes)).toBe(6 + 8_000_000 + 4)
    expect(kept).toBeLessThanOrEqual(1024 * 1024)
  })

  // Seen before: 128 kB were kept, and the middle of the output was nowhere.
  it('keeps all of a long output', async () => {
    const { stdout, stdoutOmittedBytes } = await run('seq 1 100000')
    expect(stdoutOmittedBytes).toBe(0)
    expect(stdout).toMatch(/\n49999\n50000\n50001\n/)
  })

  it('keeps less of an output that becomes longer as JSON', async () => {
    const { stdout } = await run('echo start; head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2; echo end')
    expect(stdout).toMatch(/^start\n\0[\s\S]* bytes left out [\s\S]*\0end\n$/)
  })

  it('survives output that is not UTF-8', async () => {
    expect(await run("printf '\\xff\\x00\\xe2\\x82'")).toMatchObject({ stdout: '\ufffd\0\ufffd' })
  })
})

describe('ending', () => {
  it('kills the whole group at the timeout, grandchildren that ignore SIGTERM too', async () => {
    const command = '(trap "" TERM; echo $BASHPID > t1; while :; do sleep 1; done) & trap "echo bye" TERM; wait; wait'
    const result = await run(command, { timeoutSeconds: 2 })
    expect(result).toMatchObject({ timedOut: true })
    expect(result.stdout).toBe('bye\n')
    await isGone(await pidIn('t1'))
  })

  it('kills the whole group when the call is cancelled', async () => {
    const command = '(trap "" TERM; echo $BASHPID > c1; exec sleep 1000) & sleep 1000'
    const { id } = owner.post('tools/call', { name: 'execute_command', arguments: { command } })
    const pid = await pidIn('c1')
    owner.sendLine(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } }))
    await isGone(pid)
    expect(await run('echo next')).toMatchObject({ stdout: 'next\n' })
  })

  it('does not wait for a background child that holds the output open', async () => {
    const result = await run('sleep 1000 & echo $! > bg; echo started')
    expect(result).toMatchObject({ stdout: 'started\n', exitCode: 0 })
    expect(result.durationMs).toBeLessThan(30_000)
    process.kill(await pidIn('bg'))
  })

  it('ends while a background child keeps writing', async () => {
    const result = await run('(echo $BASHPID > noisy; while echo more; do sleep 0.05; done) & sleep 0.1')
    expect(result.timedOut).toBe(false)
    await isGone(await pidIn('noisy')) // Its output is closed, so its next write ends it.
  })

  it('refuses a ninth command, and accepts it later', async () => {
    const eight = Array.from({ length: 8 }, () => run('until [ -e go ]; do sleep 0.02; done'))
    const ninth = await vi.waitUntil(async () => {
      const answer = await owner.call('execute_command', { command: 'true' })
      return answer.isError && answer
    })
    expect(ninth.content[0]?.text).toContain('8 commands are already running')
    await owner.call('write_file', { path: 'go', content: '' })
    await Promise.all(eight)
    expect(await run('true')).toMatchObject({ exitCode: 0 })
  })
})

describe('live output', () => {
  it('arrives while the command runs, in whole characters', async () => {
    const answer = owner.call(
      'execute_command',
      {
        command:
          'printf "a\\xe2"; sleep 0.1; printf "\\x82\\xac"; cat wait-for 2>&1; until [ -e seen ]; do sleep 0.02; done'
      },
      5
    )
    await vi.waitUntil(() =>
      owner.progress
        .map(({ text }) => text)
        .join('')
        .includes('a€')
    )
    await owner.call('write_file', { path: 'seen', content: '' })
    await answer
    expect(owner.progress.every(({ stream }) => stream === 'stdout')).toBe(true)
  })

  it('is bounded', async () => {
    owner.progress.length = 0
    await owner.call('execute_command', { command: 'yes | head -c 20000000' }, 6)
    const chars = owner.progress.reduce((sum, { text }) => sum + text.length, 0)
    expect(chars).toBeGreaterThan(1000)
    expect(chars).toBeLessThan(1_200_000)
  })
})
