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
