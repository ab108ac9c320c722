import { spawn } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { INSIDE } from '../protocol.ts'
import { endOtherProcesses, insideOurContainer, type ProcessTable } from './container-processes.ts'

const SELF = 50
const init = `/sbin/docker-init\0--\0${INSIDE.idle}\x0060\0`
const idle = `/bin/sh\0${INSIDE.idle}\x0060\0`

/** A fake process table; `onKill` may start new processes, as a fork bomb would. */
function fakeTable(processes: Record<number, string>, onKill: (pid: number) => void = () => {}) {
  const table = new Map(Object.entries(processes).map(([pid, line]) => [Number(pid), line]))
  const killed: number[] = []
  const stopped = new Set<number>()
  const fake: ProcessTable = {
    pids: () => [...table.keys()],
    commandLine: (pid) => table.get(pid) ?? '',
    state: (pid) => {
      const line = table.get(pid)
      if (line === undefined) return undefined
      if (line === 'zombie' || line === 'headless') return 'Z'
      if (line === 'traced') return 't'
      return stopped.has(pid) && line !== 'waiting for exec' ? 'T' : 'S'
    },
    threads: (pid) => (table.get(pid) === 'headless' ? 2 : 1),
    kill: (pid, signal) => {
      if (table.get(pid) === 'foreign') throw new Error('EPERM')
      if (signal === 'SIGSTOP') {
        stopped.add(pid)
        return
      }
      killed.push(pid)
      if (table.get(pid) !== 'immortal') table.delete(pid)
      onKill(pid)
    }
  }
  return { fake, table, killed, stopped }
}

const end = (fake: ProcessTable, options: { mayContinue?: () => boolean; deadlineMs?: number } = {}) =>
  endOtherProcesses({ deadlineMs: 30_000, self: SELF, ...options }, fake)

describe('on a host', () => {
  it('does nothing, whatever else runs', async () => {
    const { fake, killed } = fakeTable({ 1: '/sbin/init\0', 7: 'x', 8: init })
    expect(await end(fake)).toBe(true)
    expect(killed).toEqual([])
  })

  it('does nothing where these tests run', async () => {
    expect(insideOurContainer()).toBe(false)
    const child = spawn('sleep', ['1000'])
    expect(await endOtherProcesses({ deadlineMs: 10 })).toBe(true)
    expect(child.kill(0)).toBe(true)
    child.kill('SIGKILL')
  })
})

describe('in a container', () => {
  it('ends all but init, the idle script and itself', async () => {
    const { fake, killed } = fakeTable({
      1: init,
      7: idle,
      9: 'sleep',
      [SELF]: 'server',
      51: 'old',
      52: 'zombie',
      53: 'foreign'
    })
    expect(await end(fake)).toBe(true)
    expect(killed).toEqual([9, 51])
  })

  it.each(['headless', 'traced', 'waiting for exec'])('ends what is %s', async (line) => {
    const { fake, killed } = fakeTable({ 1: init, 60: line, 61: 'other' })
    expect(await end(fake)).toBe(true)
    expect(killed).toEqual([60, 61])
  })

  it('ends a command that calls itself the idle script', async () => {
    const under = fakeTable({ 1: init, 7: idle, 60: idle })
    await end(under.fake)
    expect(under.killed).toEqual([60])
    const without = fakeTable({ 1: idle, 7: idle, 60: idle })
    await end(without.fake)
    expect(without.killed).toEqual([60])
  })

  it('repeats until no forking process is left', async () => {
    let next = 100
    const { fake, table, killed } = fakeTable({ 1: init, 60: 'forker' }, () => {
      if (next < 105) table.set(next++, 'child')
    })
    expect(await end(fake)).toBe(true)
    expect(killed.length).toBe(6)
  })

  it('stops all of a fork bomb before it kills any', async () => {
    const { fake, table, stopped, killed } = fakeTable({ 1: init, 60: 'bomb', 61: 'bomb' }, () => {
      expect([...table.keys()].filter((pid) => pid !== 1 && !stopped.has(pid))).toEqual([])
    })
    const { pids } = fake
    let next = 62
    // The bomb forks between any two checks as long as one of its processes runs.
    fake.pids = () => {
      const seen = pids()
      if (next < 70 && seen.some((pid) => pid !== 1 && !stopped.has(pid))) table.set(next++, 'bomb')
      return seen
    }
    expect(await end(fake)).toBe(true)
    expect(killed.length).toBe(10)
  })

  it('gives up on a process that does not die, and when told to', async () => {
    expect(await end(fakeTable({ 1: init, 60: 'immortal' }).fake, { deadlineMs: 100 })).toBe(false)
    const { fake, killed } = fakeTable({ 1: init, 60: 'x' })
    expect(await end(fake, { mayContinue: () => false })).toBe(false)
    expect(killed).toEqual([])
  })
})
