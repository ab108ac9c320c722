/** The part of the SessionStore contract about instances and the deployment. */
import { expect, it, vi } from 'vitest'
import type { SessionStore } from './session-store.ts'

export interface SessionStores {
  a: SessionStore
  b: SessionStore
  empty(): Promise<void>
  /** A session id that only this test uses. */
  id: string
}

export const LONG = 60_000

export function describeInstances(context: () => SessionStores): void {
  it('creates one deployment id, even for concurrent first callers', async () => {
    const { a, b } = context()
    const ids = await Promise.all([a.deploymentId(), b.deploymentId(), a.deploymentId()])
    expect(new Set(ids).size).toBe(1)
    expect(ids[0]).toMatch(/^[0-9a-f-]{36}$/)
  })

  it('forgets instances whose heartbeat has expired or that have signed off', async () => {
    const { a, b } = context()
    await a.heartbeat('stays', LONG)
    await a.heartbeat('leaves', LONG)
    await a.heartbeat('dies', 30)
    expect(await b.instances()).toEqual(expect.arrayContaining(['stays', 'leaves']))
    await a.signOff('leaves')
    await vi.waitFor(async () => expect(await b.instances()).toEqual(['stays']), { interval: 5 })
    await a.heartbeat('stays', 1)
    await vi.waitFor(async () => expect(await b.instances()).toEqual([]), { interval: 5 })
  })

  // Checked: if a store counts only the forks of the caller, the other instance gets one more.
  it('counts the forks of all living instances against the limit, with the live sessions', async () => {
    const { a, b, id } = context()
    await a.heartbeat('one', LONG)
    await b.heartbeat('two', LONG)
    const taken = await a.acquire(id, 'one', LONG)
    const later = await a.acquire(`${id}2`, 'one', LONG)
    if (!taken.granted || !later.granted) throw new Error('busy')
    expect(await a.reserve(id, taken.record.epoch, 3)).toBe('ok')
    expect(await a.reserveForks('one', 1, 3)).toBe(true)
    expect(await b.reserveForks('two', 1, 3)).toBe(true)
    expect(await b.reserveForks('two', 2, 3)).toBe(false)
    expect(await a.reserve(`${id}2`, later.record.epoch, 3)).toBe('full')
    // Fewer are always accepted, and a place that is free again can be taken.
    expect(await a.reserveForks('one', 0, 1)).toBe(true)
    expect(await b.reserveForks('two', 2, 3)).toBe(true)
    expect(await a.reserve(`${id}2`, later.record.epoch, 3)).toBe('full')
    await b.signOff('two')
    expect(await a.reserve(`${id}2`, later.record.epoch, 3)).toBe('ok')
    await b.heartbeat('three', 1)
    await b.reserveForks('three', 1, 3)
    await vi.waitFor(async () => expect(await a.reserveForks('one', 1, 3)).toBe(true), { interval: 5 })
  })

  it('reserves forks up to the limit under concurrency, from two connections', async () => {
    const { a, b } = context()
    const names = Array.from({ length: 20 }, (_, at) => `instance-${at}`)
    await Promise.all(names.map((name) => a.heartbeat(name, LONG)))
    const given = await Promise.all(names.map((name, at) => (at % 2 ? a : b).reserveForks(name, 1, 7)))
    expect(given.filter(Boolean)).toHaveLength(7)
  })

  it('remembers which instances have ended, and knows nothing about those it has never seen', async () => {
    const { a, b, empty } = context()
    await a.heartbeat('stays', LONG)
    await a.heartbeat('leaves', LONG)
    await a.heartbeat('dies', 1)
    await a.signOff('leaves')
    await vi.waitFor(async () => expect((await b.endedInstances()).toSorted()).toEqual(['dies', 'leaves']))
    await a.heartbeat('dies', LONG)
    expect(await b.endedInstances()).toEqual(['leaves'])
    await empty()
    expect(await b.endedInstances()).toEqual([])
  })

  it('keeps its deployment id when it is emptied, and reports that it was', async () => {
    const { a, b, empty } = context()
    const [id, origin] = [await a.deploymentId(), await a.origin()]
    expect(await b.origin()).toEqual(origin)
    await b.deploymentId()
    await empty()
    expect(await b.deploymentId()).toBe(id)
    expect(await a.deploymentId()).toBe(id)
    expect((await a.origin()).id).not.toBe(origin.id)
    expect(await b.origin()).toEqual(await a.origin())
  })

  it('ends the leases of an instance that is gone, and no others', async () => {
    const { a, b, id } = context()
    await a.acquire(`${id}-gone`, 'gone', LONG)
    await a.acquire(`${id}-here`, 'here', LONG)
    await b.signOff('gone')
    expect(await a.get(`${id}-gone`)).toMatchObject({ holder: null, busy: false })
    expect(await a.get(`${id}-here`)).toMatchObject({ holder: 'here', busy: true })
    expect(await a.acquire(`${id}-gone`, 'here', LONG)).toMatchObject({ granted: true })
  })
}
