import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { eventually } from '../../tests/support/eventually.ts'
import { outsidePid } from '../../tests/support/outside-pid.ts'
import { temporaryFolder } from '../../tests/support/temporary-folder.ts'
import { textOf } from '../../tests/support/text-of.ts'
import { child, openTestConnections, type TestConnections } from './connections.fixture.ts'

const opened: TestConnections[] = []
afterEach(async () => {
  await Promise.all(opened.splice(0).map((test) => test.close()))
})

const fresh = (name: string) => join(temporaryFolder(), name)
const pidOf = ({ result }: { result: Record<string, unknown> }): string => JSON.parse(textOf(result)).pid

async function open(servers: Record<string, unknown>) {
  const test = await openTestConnections(servers)
  opened.push(test)
  const instances = () => test.connections.state('a')?.instances ?? []
  const busy = (...counts: number[]) =>
    eventually(`so many calls at work: ${counts}`, () => `${instances().map((one) => one.busy)}` === `${counts}`)
  return { ...test, instances, busy }
}

describe('instances of one server', { timeout: 60_000 }, () => {
  it('are started when the others are busy, up to the limit, and share the load', async () => {
    const { call, connections, busy } = await open({ a: child('who', [], { instances: 3 }) })
    expect(new Set([pidOf(await call('a', 'who')), pidOf(await call('a', 'who'))]).size).toBe(1)
    expect(connections.childPids).toHaveLength(1)
    const file = fresh('go')
    const held = []
    for (let i = 0; i < 6; i++) held.push(call('a', 'hold', { file }))
    await busy(2, 2, 2)
    writeFileSync(file, '')
    const perPid = Map.groupBy((await Promise.all(held)).map(pidOf), (pid) => pid)
    expect([...perPid.values()].map(({ length }) => length)).toEqual([2, 2, 2])
    expect(connections.state('a')).toMatchObject({ state: 'running', starts: 3, busy: 0, breaker: 'closed' })
  })

  it('that start hold no call that another one can take', async () => {
    const first = fresh('first')
    const { call, instances } = await open({ a: child('who-slow', [first], { instances: 2 }) })
    const file = fresh('go')
    const held = call('a', 'hold', { file })
    await eventually('the first to run', () => instances()[0]?.state === 'running')
    // The second instance never answers until its file is there; it may keep one of these calls.
    const calls = Array.from({ length: 6 }, () => call('a', 'who'))
    await eventually('the second to start', () => instances()[1]?.state === 'starting')
    const done = { count: 0 }
    for (const one of calls) void one.then(() => done.count++)
    writeFileSync(file, '')
    await held
    await eventually('all but one to be done', () => done.count === 5)
    expect(instances()).toMatchObject([{ state: 'running' }, { state: 'starting', busy: 1 }])
    writeFileSync(`${first}.second`, '')
    await Promise.all(calls)
  })

  it('that can not start do not affect those that run', async () => {
    const { call, connections, instances } = await open({ a: child('who', [fresh('only')], { instances: 2 }) })
    const file = fresh('go')
    const held = call('a', 'hold', { file })
    await eventually('the first to run', () => instances()[0]?.state === 'running')
    // Each of these calls finds the first instance busy, fails to start the second, and then uses the first.
    for (let i = 0; i < 4; i++) expect(outsidePid(pidOf(await call('a', 'who')))).toBe(connections.childPids[0])
    expect(instances()).toMatchObject([
      { state: 'running', breaker: 'closed' },
      { state: 'stopped', breaker: 'open', lastError: { message: expect.stringContaining('exit code 8') } }
    ])
    expect(connections.state('a')).toMatchObject({ state: 'running', breaker: 'closed' })
    writeFileSync(file, '')
    await held
  })

  it('take over a read, but not a write, from one that dies in the middle', async () => {
    const { call, connections, busy } = await open({ a: child('who', [], { instances: 2 }) })
    const [go, log] = [fresh('go'), fresh('log')]
    const read = call('a', 'hold', { file: go })
    await eventually('the read to begin', () => existsText(`${go}.began`) !== '')
    const write = call('a', 'write', { file: log, line: 'once', until: go }, { mustNotRepeat: true }).catch(
      (error) => error
    )
    await busy(1, 1)
    await eventually('the write to be done', () => existsText(log) === 'once\n')
    for (const pid of connections.childPids) process.kill(pid, 'SIGKILL')
    expect(await write).toMatchObject({ code: 'child_lost', details: { sent: true } })
    writeFileSync(go, '')
    const { attempts } = await read
    expect(attempts).toBeGreaterThan(1)
    expect(existsText(log)).toBe('once\n')
  })

  it('go idle one by one and come back', async () => {
    const { call, connections, busy } = await open({ a: child('who', [], { instances: 2, idleSeconds: 0.2 }) })
    const file = fresh('go')
    const held = [call('a', 'hold', { file }), call('a', 'hold', { file })]
    await busy(1, 1)
    writeFileSync(file, '')
    await Promise.all(held)
    await eventually('both to stop', () => connections.childPids.length === 0)
    expect(outsidePid(pidOf(await call('a', 'who')))).toBe(connections.childPids[0])
  })
})

function existsText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
