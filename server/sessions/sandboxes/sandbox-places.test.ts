import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type FakeSessions, fakeSessions } from './fake-sessions.ts'
import type { SessionManager } from './session-manager.ts'

// In these tests the part of an id before the dash is its owner.
let fake: FakeSessions

beforeEach(async () => {
  fake = await fakeSessions()
})
afterEach(() => fake.close())

const write = (manager: SessionManager, id: string, content: string) =>
  manager.hold(id, ({ runTool }) =>
    runTool({ callId: crypto.randomUUID(), name: 'write_file', args: { path: 'f', content } })
  )
const read = async (manager: SessionManager, id: string) => {
  const { content } = await manager.run(id, (workspace) => workspace.callUnrecorded('read_file', { path: 'f' }))
  return content
}
const live = async () => (await fake.store.sessions.listLive()).map(({ sessionId }) => sessionId).sort()

/** Works in the session until it is told to stop. */
function work(manager: SessionManager, id: string): { started: Promise<void>; stop(): Promise<void> } {
  const started = Promise.withResolvers<void>()
  const end = Promise.withResolvers<void>()
  const done = manager.run(id, async () => {
    started.resolve()
    await end.promise
  })
  done.catch(started.reject)
  return {
    started: started.promise,
    async stop() {
      end.resolve()
      await done
    }
  }
}

describe('when all sandboxes are taken', () => {
  // Checked: if none is stopped, the newcomer is refused.
  it('the one that has been idle longest is saved and stopped, and loses nothing', async () => {
    const manager = await fake.start('a', { maxSessions: 2 })
    const leave = [manager.attach('p-1'), manager.attach('q-1')] // open tabs hold nothing
    await write(manager, 'p-1', 'of p')
    await write(manager, 'q-1', 'of q')
    await write(manager, 'r-1', 'of r')
    expect(await live()).toEqual(['q-1', 'r-1'])
    expect(fake.engine.containers.size).toBe(2)
    const told = (await fake.store.events.read('p-1')).find(({ type }) => type === 'session:notice')
    expect(told?.data).toMatchObject({ code: 'sandbox_recycled', message: expect.stringContaining('made room') })
    expect(await read(manager, 'p-1')).toEqual([{ type: 'text', text: 'of p' }])
    expect(await live()).toEqual(['p-1', 'r-1'])
    for (const each of leave) each()
  })

  it('one that another instance has just stopped is not stopped again, and makes no room', async () => {
    const [a, b] = [await fake.start('a', { maxSessions: 2 }), await fake.start('b', { maxSessions: 2 })]
    await write(a, 'p-1', 'of p')
    expect(await a.janitor.recycleForOther('p-1')).toBe(true)
    const before = await fake.store.sessions.get('p-1')
    expect(await b.janitor.recycleForOther('p-1')).toBe(false)
    // The first one may still be writing its notice under its lease.
    expect(await fake.store.sessions.get('p-1')).toEqual(before)
    const told = (await fake.store.events.read('p-1')).filter(({ type }) => type === 'session:notice')
    expect(told).toHaveLength(1)
    expect(await read(b, 'p-1')).toEqual([{ type: 'text', text: 'of p' }])
  })

  it('one in which something runs stays, and the request is refused', async () => {
    const manager = await fake.start('a', { maxSessions: 2 })
    const jobs = ['p-1', 'q-1'].map((id) => work(manager, id))
    await Promise.all(jobs.map(({ started }) => started))
    await expect(write(manager, 'r-1', 'x')).rejects.toMatchObject({ code: 'too_many_sessions', kind: 'unavailable' })
    expect(await live()).toEqual(['p-1', 'q-1'])
    await jobs[0]?.stop()
    await write(manager, 'r-1', 'x')
    expect(await live()).toEqual(['q-1', 'r-1'])
    await jobs[1]?.stop()
  })

  it('an idle one of another instance gives way too', async () => {
    const [a, b] = [await fake.start('a', { maxSessions: 1 }), await fake.start('b', { maxSessions: 1 })]
    await write(a, 'p-1', 'of p')
    await write(b, 'q-1', 'of q')
    expect(await live()).toEqual(['q-1'])
    expect(await read(a, 'p-1')).toEqual([{ type: 'text', text: 'of p' }])
    expect(await live()).toEqual(['p-1'])
  })

  it('one that can not be saved stays', async () => {
    const manager = await fake.start('a', { maxSessions: 1 })
    await write(manager, 'p-1', 'of p')
    const [container] = fake.engine.containers.values()
    const connection = container?.connection
    if (connection) connection.changes = () => Promise.reject(new Error('disk full'))
    await expect(write(manager, 'q-1', 'x')).rejects.toMatchObject({ code: 'too_many_sessions' })
    expect(await live()).toEqual(['p-1'])
  })
})

describe('a fair share', () => {
  // Checked: if none is stopped, the newcomer is refused.
  it('takes a sandbox from the owner with the most sandboxes, even if another sandbox has been idle for longer', async () => {
    const manager = await fake.start('a', { maxSessions: 4 })
    for (const id of ['q-1', 'p-1', 'p-2', 'p-3']) await write(manager, id, id)
    await write(manager, 'r-1', 'x')
    expect(await live()).toEqual(['p-2', 'p-3', 'q-1', 'r-1'])
  })

  it('does not let an owner with a full share push out an owner with less', async () => {
    const manager = await fake.start('a', { maxSessions: 2 })
    await write(manager, 'q-1', 'x')
    const job = work(manager, 'p-1')
    await job.started
    await expect(write(manager, 'p-2', 'x')).rejects.toMatchObject({ code: 'too_many_sessions' })
    await job.stop()
    await write(manager, 'p-2', 'x')
    expect(await live()).toEqual(['p-2', 'q-1'])
  })

  it('holds one owner to a number, however many requests come at once', async () => {
    const manager = await fake.start('a', { maxSessions: 10, maxSandboxesPerOwner: 3 })
    const jobs = Array.from({ length: 8 }, (_, i) => work(manager, `p-${i}`))
    const started = await Promise.allSettled(jobs.map((job) => job.started))
    expect(started.filter(({ status }) => status === 'fulfilled')).toHaveLength(3)
    const refused = started.find(({ status }) => status === 'rejected')
    expect(refused).toMatchObject({ reason: { code: 'too_many_sandboxes_of_owner' } })
    expect(await live()).toHaveLength(3)
    await Promise.allSettled(jobs.map((job) => job.stop()))
    await write(manager, 'q-1', 'x')
    await write(manager, 'p-9', 'x')
    expect(await live()).toHaveLength(4)
  })
})

describe('the forks', () => {
  const preview = (manager: SessionManager, id: string) =>
    manager.hold(id, ({ forks }) =>
      forks.preview({ callId: 'c', name: 'write_file', args: { path: 'f', content: 'x' }, onOutput: () => {} })
    )

  // Seen before: each instance counted its own forks only, so there were more containers than allowed.
  it('of all instances count against the limit, and their places are free again when they end', async () => {
    const options = { maxSessions: 3 }
    const [a, b] = [await fake.start('a', options), await fake.start('b', options)]
    await preview(a, 'p-1')
    await write(b, 'q-1', 'of q')
    await expect(preview(b, 'q-1')).rejects.toMatchObject({ code: 'too_many_sessions' })
    expect(fake.engine.containers.size).toBe(3)
    await a.hold('p-1', ({ forks }) => forks.discard())
    await vi.waitFor(() => preview(b, 'q-1'))
    // A session is worth more than a fork, but nothing that is in use is taken.
    const busy = [work(a, 'p-1'), work(b, 'q-1')]
    await Promise.all(busy.map(({ started }) => started))
    await expect(write(a, 'r-1', 'of r')).rejects.toMatchObject({ code: 'too_many_sessions' })
    await Promise.all(busy.map(({ stop }) => stop()))
  })
})

describe('the forks of an owner', () => {
  it('count against the limit of the owner when another sandbox is opened', async () => {
    const manager = await fake.start('a', { maxSessions: 9, maxSandboxesPerOwner: 2 })
    await manager.hold('p-1', ({ forks }) =>
      forks.preview({ callId: 'c', name: 'write_file', args: { path: 'f', content: 'x' }, onOutput: () => {} })
    )
    const busy = work(manager, 'p-1')
    await busy.started
    await expect(write(manager, 'p-2', 'x')).rejects.toMatchObject({ code: 'too_many_sandboxes_of_owner' })
    await write(manager, 'q-1', 'x')
    await busy.stop()
    await manager.hold('p-1', ({ forks }) => forks.discard())
    await write(manager, 'p-2', 'x')
    expect(await live()).toEqual(['p-1', 'p-2', 'q-1'])
  })
})

describe('programs', () => {
  const FULL = { code: expect.stringMatching(/^too_many/), kind: 'unavailable' }

  // Checked: if their containers take no places, all 28 owners get one.
  it('take places like sandboxes, at most a quarter of them, however many owners there are', async () => {
    const manager = await fake.start('a', { maxSessions: 8 })
    const owners = Array.from({ length: 28 }, (_, at) => `owner${at}`)
    const given = await Promise.allSettled(owners.map((owner) => manager.reserveRealm(owner)))
    const releases = given.flatMap((place) => (place.status === 'fulfilled' ? [place.value] : []))
    expect(releases).toHaveLength(2)
    const jobs = Array.from({ length: 6 }, (_, at) => work(manager, `p${at}-1`))
    await Promise.all(jobs.map(({ started }) => started))
    await expect(write(manager, 'q-1', 'x')).rejects.toMatchObject({ code: 'too_many_sessions' })
    for (const release of releases) release()
    await vi.waitFor(() => write(manager, 'q-1', 'x'))
    await Promise.all(jobs.map(({ stop }) => stop()))
  })

  it('of all instances share the limit, and an idle sandbox makes room for one, but no busy one', async () => {
    const options = { maxSessions: 2 }
    const [a, b] = [await fake.start('a', options), await fake.start('b', options)]
    const release = await a.reserveRealm('p')
    await write(a, 'q-1', 'of q')
    const second = await b.reserveRealm('r')
    expect(await live()).toEqual([])
    second()
    const busy = work(a, 'q-1')
    await vi.waitFor(() => busy.started)
    await expect(b.reserveRealm('r')).rejects.toMatchObject(FULL)
    release()
    await vi.waitFor(async () => (await b.reserveRealm('r'))())
    await busy.stop()
  })

  it('count among the sandboxes of their owner', async () => {
    const manager = await fake.start('a', { maxSessions: 40, maxSandboxesPerOwner: 2 })
    const job = work(manager, 'p-1')
    await job.started
    await manager.reserveRealm('p')
    await expect(manager.reserveRealm('p')).rejects.toMatchObject({ code: 'too_many_sandboxes_of_owner' })
    await manager.reserveRealm('q')
    await job.stop()
  })
})
