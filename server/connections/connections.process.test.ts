import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setImmediate as nextRound } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { eventually } from '../../tests/support/eventually.ts'
import { outsidePid } from '../../tests/support/outside-pid.ts'
import { temporaryFolder } from '../../tests/support/temporary-folder.ts'
import { textOf } from '../../tests/support/text-of.ts'
import { fakeKeyValueStore } from '../storage/fake-key-value-store.ts'
import { child, isAlive, LOCAL, openTestConnections, real, type TestConnections } from './connections.fixture.ts'

const opened: TestConnections[] = []
const open: typeof openTestConnections = async (servers, options) => {
  const test = await openTestConnections(servers, options)
  opened.push(test)
  return test
}
afterEach(async () => {
  await Promise.all(opened.splice(0).map((test) => test.close()))
})
const signal = new AbortController().signal
const placeholder = (kind: string, name: string) => `\${${kind}:${name}}`
const countFile = () => join(process.env.TMPDIR ?? '/tmp', `count-${crypto.randomUUID()}`)
const written = (file: string) => readFileSync(file, 'utf8').trim().split('\n')

describe('connections to servers', { timeout: 60_000 }, () => {
  it('starts a real server when first needed, once for many callers, and remembers its tools', async () => {
    const { connections, index, call } = await open({ everything: real('server-everything') })
    expect(index.unseen()).toEqual(['everything'])
    expect(connections.childPids).toEqual([])
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, i) => call('everything', 'echo', { message: `m${i}` }))
    )
    expect(results.map(({ result }) => textOf(result))).toEqual(results.map((_, i) => `Echo: m${i}`))
    expect(connections.childPids).toHaveLength(1)
    expect(connections.state('everything')).toMatchObject({ state: 'running', starts: 1 })
    expect(index.tool('everything', 'get-sum')).toMatchObject({ annotations: { readOnlyHint: true } })
  })

  it('knows the tools of a server that was seen before without starting it', async () => {
    const keyValues = fakeKeyValueStore()
    const first = await open({ a: child('steady') }, { keyValues })
    await first.connections.list('a', { caller: LOCAL, signal })
    await first.close()
    const { connections, index } = await open({ a: child('steady') }, { keyValues })
    expect(index.tools('a')?.map(({ name }) => name)).toContain('echo')
    expect(index.revision('a')).toEqual({ kind: 'legacy' })
    expect(connections.childPids).toEqual([])
    // Another command is another server.
    expect((await open({ a: child('steady', ['x']) }, { keyValues })).index.tools('a')).toBeUndefined()
  })

  it('answers the very next call after a kill -9, also a call that must not be repeated', async () => {
    const file = countFile()
    const { call } = await open({ a: child('steady', [file]) })
    const pids = new Set<string>()
    for (let round = 0; round < 5; round++) {
      const pid = textOf((await call('a', 'pid')).result)
      pids.add(pid)
      process.kill(outsidePid(pid), 'SIGKILL')
      const { result } = await call('a', 'write', { message: `m${round}` }, { mustNotRepeat: true })
      expect(textOf(result)).toBe('written')
    }
    expect(pids.size).toBe(5)
    expect(written(file)).toEqual(['m0', 'm1', 'm2', 'm3', 'm4'])
  })

  it('never runs a write twice when the server dies in the middle', async () => {
    const file = countFile()
    const { call } = await open({ a: child('steady', [file]) })
    await expect(call('a', 'write_and_die', {}, { mustNotRepeat: true })).rejects.toMatchObject({
      code: 'child_lost',
      details: { sent: true }
    })
    expect(written(file)).toEqual(['died'])
    expect(textOf((await call('a', 'write', { message: 'next' }, { mustNotRepeat: true })).result)).toBe('written')
    expect(written(file)).toEqual(['died', 'next'])
  })

  it('runs a write at most once, at whatever moment the server is killed', async () => {
    const file = countFile()
    const { call, connections } = await open({ a: child('steady', [file]) })
    for (let round = 0; round < 25; round++) {
      await call('a', 'pid')
      const [pid] = connections.childPids
      const message = `round-${round}`
      const answer = call('a', 'write', { message }, { mustNotRepeat: true }).catch((error) => error)
      if (round % 5 > 0) await new Promise((done) => setTimeout(done, (round % 5) - 1))
      else await Promise.resolve()
      if (pid !== undefined && isAlive(pid)) process.kill(pid, 'SIGKILL')
      const outcome = await answer
      const runs = readFileSync(file, { encoding: 'utf8', flag: 'a+' })
        .split('\n')
        .filter((line) => line === message).length
      if (outcome instanceof Error) {
        expect(outcome).toMatchObject({ code: 'child_lost', details: { sent: true } })
        expect(runs).toBeLessThanOrEqual(1)
      } else expect(runs).toBe(1)
    }
  })

  it('repeats a read when the server dies in the middle, and says so', async () => {
    const file = countFile()
    const { call } = await open({ a: child('steady', [file]) })
    const { result, attempts } = await call('a', 'read_and_die_once')
    expect([textOf(result), attempts]).toEqual(['read', 2])
    // A server that always dies is given up.
    await expect(call('a', 'die')).rejects.toMatchObject({ code: 'child_lost' })
  })

  it('connects to a server that dies when probed for the newer revision', async () => {
    const { call, index } = await open({ a: child('dies-on-probe') })
    expect(textOf((await call('a', 'old')).result)).toBe('old')
    expect(index.revision('a')).toEqual({ kind: 'legacy' })
  })

  it('speaks the newer revision with a server that knows it, and remembers that', async () => {
    const keyValues = fakeKeyValueStore()
    // The bundle starts well within the time that the probe waits, also on a busy machine.
    const main = resolve(import.meta.dirname, '../../dist/gateway.mjs')
    const config = join(temporaryFolder(), 'mcp.json')
    writeFileSync(config, JSON.stringify({ mcpServers: { inner: child('steady') } }))
    const args = [main, 'gateway', '--config', config, '--data-dir', `${config}.data`]
    const servers = { outer: { command: process.execPath, args } }
    const echo = { server: 'inner', tool: 'echo', params: { message: 'deep' } }
    for (const round of [1, 2]) {
      const test = await open(servers, { keyValues })
      expect(test.index.revision('outer')?.kind).toBe(round === 1 ? undefined : 'modern')
      const { result } = await test.call('outer', 'execute', echo, { mustNotRepeat: true })
      expect(textOf(result)).toBe('deep')
      expect(test.index.revision('outer')?.kind).toBe('modern')
      await test.close()
    }
  })

  it('gives up on a hanging call in time, and keeps a server that still answers', async () => {
    const { call } = await open({ a: child('steady', [], { timeoutMs: { call: 3000 } }) })
    const before = textOf((await call('a', 'pid')).result)
    await expect(call('a', 'hang')).rejects.toMatchObject({ kind: 'timeout', code: 'child_timeout' })
    // It still answers other questions, so it is kept.
    expect(textOf((await call('a', 'pid')).result)).toBe(before)
  })

  it('reports a server that crashes or hangs on start, pauses after three failures, and affects no other', async () => {
    const { call, connections, index } = await open({
      crash: child('crash-on-start', [], { env: { TOKEN: placeholder('env', 'FROM_OUTSIDE') } }),
      hang: child('hang-on-start', [], { timeoutMs: { start: 400, list: 100 } }),
      absent: { command: process.execPath, args: ['/nowhere.js'] },
      tells: {
        command: process.execPath,
        args: ['-e', 'console.error(process.argv[1], process.env.DB);process.exit(1)', 'postgres://a:b4dpassw@h/d'],
        env: { DB: 'mysql://u:pa55word@h/db' }
      },
      fine: child('steady')
    })
    const absent = call('absent', 'x').catch((error) => error)
    const crash = call('crash', 'x').catch((error) => error)
    const tells = call('tells', 'x').catch((error) => error)
    const hang = call('hang', 'x').catch((error) => error)
    expect(textOf((await call('fine', 'echo', { message: 'hi' })).result)).toBe('hi')
    expect((await crash).message).toMatch(/"crash" did not start: no configuration.*exit code 7/)
    expect((await crash).message).not.toContain('outside-value')
    // Secrets that stand in mcp.json as plain text are hidden too.
    expect((await tells).message).toMatch(/did not start: .*\[secret\]/)
    expect((await tells).message).not.toMatch(/b4dpassw|pa55word/)
    expect((await absent).message).toMatch(
      /Error: Cannot find module '\/nowhere\.js' \(.*See: mcp-orchestrator servers logs "\w+"$/
    )
    expect((await hang).message).toMatch(/"hang" runs, but did not answer within 400 ms \("timeoutMs\.start"\)\./)
    await call('crash', 'x').catch(() => {})
    const resting = await call('crash', 'x').catch((error) => error)
    expect(resting).toMatchObject({ code: 'server_resting' })
    expect(connections.state('crash')).toMatchObject({ breaker: 'open', state: 'stopped' })
    expect(index.record('crash')?.lastError?.message).toMatch(/did not start/)
    await eventually('the failed ones to be gone', () => connections.childPids.length === 1)
  })

  it('tests a running server by asking it again, and a resting one at once', async () => {
    const { call, connections, index } = await open({
      a: child('steady', [], { timeoutMs: { list: 4000 } }),
      crash: child('crash-on-start')
    })
    const { signal } = new AbortController()
    expect((await connections.test('a', { caller: LOCAL, signal })).map(({ name }) => name)).toContain('echo')
    await call('a', 'echo', { message: 'hi' })
    expect([connections.calls('a'), connections.state('a')?.startedAt]).toEqual([1, expect.any(Number)])
    const [pid] = connections.childPids
    process.kill(pid!, 'SIGSTOP')
    await expect(connections.test('a', { caller: LOCAL, signal })).rejects.toThrow('"a"')
    expect(index.record('a')?.lastError?.message).toContain('"a"')
    expect((await connections.test('a', { caller: LOCAL, signal })).map(({ name }) => name)).toContain('echo')
    await eventually('the hanging one to be gone', () => !connections.childPids.includes(pid!))
    for (let i = 0; i < 3; i++) await connections.test('crash', { caller: LOCAL, signal }).catch(() => {})
    await expect(connections.test('crash', { caller: LOCAL, signal })).rejects.toMatchObject({ code: 'server_failed' })
  })

  it('says which command is missing', async () => {
    const { call } = await open({ a: { command: 'no-such-command-here' } })
    await expect(call('a', 'x')).rejects.toThrow(
      'The server "a" can\'t be started: there is no command "no-such-command-here"; check its name and PATH.'
    )
  })

  it('ignores noise on stdout', async () => {
    const { call, log, connections } = await open({ a: child('noise', ['little']) })
    expect(textOf((await call('a', 'fine')).result)).toBe('fine')
    await connections.stop('a')
    expect(log('a')).toContain('Starting up')
  })

  // Checked: without the limit, the flooding server keeps running.
  it('contains floods of 100 MB, in lines and in one line', async () => {
    const { call, connections } = await open({
      lines: child('noise', ['lines']),
      line: child('noise'),
      fine: child('steady')
    })
    const flood = call('lines', 'fine').catch((error) => error)
    const huge = call('line', 'flood').catch((error) => error)
    for (let i = 0; i < 20; i++) expect(textOf((await call('fine', 'echo', { message: `${i}` })).result)).toBe(`${i}`)
    expect((await flood).message).toMatch(/"lines".*floods/)
    expect(await huge).toMatchObject({ code: 'result_too_large' })
    expect(process.memoryUsage().rss).toBeLessThan(900 * 1024 * 1024)
    expect(textOf((await call('line', 'fine')).result)).toBe('fine')
    expect(connections.state('lines')?.lastError?.message).toMatch(/floods/)
  })

  it('treats a server that lists nothing after its restart as unhealthy', async () => {
    const { call, connections, index } = await open({
      a: child('empty-after-restart', [countFile()]),
      fine: child('steady')
    })
    expect(textOf((await call('a', 'there')).result)).toBe('there')
    const [pid] = connections.childPids
    process.kill(pid!, 'SIGKILL')
    await expect(call('a', 'there')).rejects.toMatchObject({ code: 'tools_missing' })
    expect(connections.state('a')).toMatchObject({
      state: 'stopped',
      lastError: { message: expect.stringContaining('no longer lists any of its tools') }
    })
    expect(index.tools('a')?.map(({ name }) => name)).toEqual(['there'])
    expect(textOf((await call('fine', 'echo', { message: 'hi' })).result)).toBe('hi')
  })

  it('notices new tools', async () => {
    const { call, index } = await open({ a: child('steady') })
    await call('a', 'grow')
    await eventually('the new tool', () => index.tool('a', 'grown') !== undefined)
    expect(textOf((await call('a', 'grown')).result)).toBe('grown')
  })

  it('gives a child its own variables and secrets, and nothing of ours', async () => {
    const { call, connections, log } = await open({
      a: child('steady', [], { env: { TOKEN: `x-${placeholder('secret', 'FROM_OUTSIDE')}`, PLAIN: '1' } })
    })
    const env = JSON.parse(textOf((await call('a', 'env')).result))
    expect(env).toMatchObject({ TOKEN: 'x-outside-value', PLAIN: '1', PATH: process.env.PATH })
    expect(env).not.toHaveProperty('GATEWAY_ONLY')
    await call('a', 'complain')
    await eventually('its words', () => connections.logTail('a', 'local').includes('secret is'))
    expect(connections.logTail('a', 'local')).toBe('secret is x-[secret]\n')
    await connections.stop('a')
    expect(log('a')).toBe('secret is x-[secret]\n')
    // The server reports unknown variables in its own words.
    const failed = connections.request('a', { caller: LOCAL, method: 'tell/outside-value', params: {}, signal })
    await expect(failed).rejects.toMatchObject({
      message: expect.stringContaining('Method not found: tell/[secret]'),
      cause: { code: -32601, message: 'Method not found: tell/[secret]' }
    })
  })

  it('names a missing secret and starts nothing', async () => {
    const { call, connections } = await open({
      a: child('steady', [], { env: { TOKEN: placeholder('secret', 'NOT_THERE') } })
    })
    await expect(call('a', 'echo')).rejects.toThrow(
      `The server "a" needs ${placeholder('secret', 'NOT_THERE')}, which is not in the credentials file or the environment: store it`
    )
    expect(connections.childPids).toEqual([])
  })

  it('stops an idle server and starts it again', async () => {
    const { call, connections } = await open({ a: child('steady', [], { idleSeconds: 0.2 }) })
    const before = textOf((await call('a', 'pid')).result)
    await eventually('the idle server to stop', () => connections.childPids.length === 0)
    expect(textOf((await call('a', 'pid')).result)).not.toBe(before)
  })

  it('passes a cancellation on and frees the caller at once', async () => {
    const { call } = await open({ a: child('steady') })
    await call('a', 'pid')
    const controller = new AbortController()
    const hanging = call('a', 'hang', {}, { signal: controller.signal })
    await nextRound()
    controller.abort()
    await expect(hanging).rejects.toMatchObject({ kind: 'cancelled' })
  })

  it('passes progress on', async () => {
    const { call } = await open({ everything: real('server-everything') })
    const seen: number[] = []
    await call(
      'everything',
      'trigger-long-running-operation',
      { duration: 0.3, steps: 3 },
      { onProgress: ({ progress }) => void seen.push(progress) }
    )
    expect(seen).toEqual([1, 2, 3])
  })

  it('loses no progress that comes in one write with the answer', async () => {
    const { call, index } = await open({ modern: child('modern') })
    const seen: number[] = []
    const { result } = await call('modern', 'steps', {}, { onProgress: ({ progress }) => void seen.push(progress) })
    expect([textOf(result), seen]).toEqual(['done', [1, 2, 3]])
    expect(index.revision('modern')).toMatchObject({ kind: 'modern' })
  })

  it('answers 1,000 concurrent calls on 10 servers, each to its caller', async () => {
    const names = Array.from({ length: 10 }, (_, i) => `s${i}`)
    const { call, connections } = await open(Object.fromEntries(names.map((name) => [name, child('steady', [name])])))
    const asked = Array.from({ length: 1000 }, (_, i) => ({ server: names[i % 10]!, message: `m${i}` }))
    const answers = await Promise.all(asked.map(({ server, message }) => call(server, 'echo', { message })))
    expect(answers.map(({ result }) => textOf(result))).toEqual(asked.map(({ message }) => message))
    expect(connections.childPids).toHaveLength(10)
  })

  it('stops everything that a stubborn server has started', async () => {
    const { call, connections } = await open({ a: child('stubborn', ['stubborn-test']) })
    await call('a', 'ready')
    const [pid] = connections.childPids
    await connections.close()
    expect(isAlive(pid!)).toBe(false)
  })
})
