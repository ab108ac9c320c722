import { readdirSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { files as filesOf, put } from '../../storage/checkpoints/checkpoint-files.fixture.ts'
import { type FakeSessions, fakeSessions } from './fake-sessions.ts'
import type { SessionManager } from './session-manager.ts'

let fake: FakeSessions
beforeEach(async () => {
  fake = await fakeSessions()
})
afterEach(() => fake.close())

const write = (manager: SessionManager, sessionId: string, content: string) =>
  manager.hold(sessionId, (hold) => hold.runTool({ callId: content, name: 'write_file', args: { path: 'a', content } }))
const containerOf = (manager: SessionManager, sessionId: string) =>
  manager.run(sessionId, async ({ containerId }) => containerId)

/** As if nothing had been saved for a day. */
function age(folder: string): void {
  const past = new Date(Date.now() - 86_400_000)
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    utimesSync(join(entry.parentPath, entry.name), past, past)
  }
}

describe('idle sandboxes', () => {
  // Seen to fail without the early release: the container stays until the session is idle.
  it('are given up with their files saved, if the engine can not pause', async () => {
    Object.assign(fake.engine, { pause: undefined, unpause: undefined })
    const manager = await fake.start('one', { pauseAfterMs: 0 })
    await write(manager, 's', 'kept')
    await vi.waitFor(() => expect(fake.engine.containers.size).toBe(0))
    const next = await containerOf(manager, 's')
    expect(fake.engine.containers.get(next)?.files.get('a')).toBe('kept')
  })

  // Seen before: the sandbox of a client that connected again and again was recycled under it.
  it('stay as long as someone connects again, on any instance', async () => {
    const idleMs = 3_600_000
    const one = await fake.start('one', { idleMs })
    const two = await fake.start('two', { idleMs })
    const container = await containerOf(one, 's')
    const started = (await fake.store.sessions.get('s'))?.activeAt ?? 0
    const real = fake.store.sessions.takeIdle
    // An hour after the last work.
    const late = () => fake.store.sessions.now().then((now) => now - started - 1)
    vi.spyOn(fake.store.sessions, 'takeIdle').mockImplementation(async (holder, options) =>
      real(holder, { ...options, idleMs: options.idleMs === idleMs ? await late() : options.idleMs })
    )
    await vi.waitFor(async () => expect(await fake.store.sessions.now()).toBeGreaterThan(started + 50))
    two.attach('s')()
    await vi.waitFor(async () => expect((await fake.store.sessions.get('s'))?.activeAt).toBeGreaterThan(started + 40))
    await one.janitor.round()
    expect(fake.engine.containers.has(container)).toBe(true)
    vi.restoreAllMocks()
  })
})

describe('retention', () => {
  // Checked: if only the folder's own times count, the files of a session that is used every day are removed.
  it('leaves the files of a session that is used without its sandbox', async () => {
    const manager = await fake.start('one', { idleMs: 0, retentionMs: 3_600_000 })
    await write(manager, 's', 'kept')
    await vi.waitFor(async () => {
      await manager.janitor.round()
      expect(fake.engine.containers.size).toBe(0)
    })
    age(join(fake.dir, 'checkpoints'))
    await manager.hold('s', async () => {})
    await manager.janitor.round()
    const container = await containerOf(manager, 's')
    expect(fake.engine.containers.get(container)?.files.get('a')).toBe('kept')
  })

  it('removes nothing because of a clock that jumped, until that clock has run evenly for a while', async () => {
    const manager = await fake.start('one', { retentionMs: 86_400_000, clockTrustMs: 60_000 })
    await write(manager, 's', 'kept')
    await fake.store.sessions.unbind('s', (await fake.store.sessions.get('s'))?.epoch ?? 0)
    let passed = 0
    const [clock, real] = [performance.now.bind(performance), fake.store.sessions.now]
    vi.spyOn(performance, 'now').mockImplementation(() => clock() + passed)
    vi.spyOn(fake.store.sessions, 'now').mockImplementation(async () => (await real()) + passed)
    passed = 61_000
    await manager.janitor.round()
    vi.mocked(fake.store.sessions.now).mockImplementation(async () => (await real()) + 2 * 86_400_000 + passed)
    await manager.janitor.round()
    expect(fake.forgotten).toEqual([])
    passed += 61_000
    await manager.janitor.round()
    expect(fake.forgotten).toEqual(['s'])
    vi.restoreAllMocks()
  })

  // Checked: if the record is removed first, a removal that fails half-way leaves the log and the ownership for ever.
  it('tries again what it could not remove, and goes on with other sessions meanwhile', async () => {
    const manager = await fake.start('one', { retentionMs: 1 })
    const ids = ['a', 'b', 'c']
    for (const id of ids) {
      await manager.hold(id, ({ epoch }) =>
        fake.store.events.append(id, [{ type: 'session:notice', data: {} }], { epoch })
      )
    }
    await vi.waitFor(async () => {
      const [now, records] = [await fake.store.sessions.now(), await fake.store.sessions.list()]
      expect(records.every(({ activeAt }) => now > activeAt + 1)).toBe(true)
    })
    vi.spyOn(fake.checkpoints, 'remove').mockRejectedValueOnce(new Error('no disk'))
    await manager.janitor.round()
    expect(fake.forgotten).toHaveLength(2)
    await manager.janitor.round()
    expect(fake.forgotten.toSorted()).toEqual(ids)
    expect(await fake.store.sessions.list()).toEqual([])
    for (const id of ids) expect(await fake.store.events.read(id)).toEqual([])
  })
})

it.each(['checkpoints', 'events'] as const)('keeps the %s of a session that someone comes back to', async (part) => {
  const manager = await fake.start('one', { retentionMs: 1 })
  const { sessions, events } = fake.store
  const work = async (text: string, leaseMs: number) => {
    const taken = await sessions.acquire('s', 'two', leaseMs)
    if (!taken.granted) throw new Error('held')
    const { epoch } = taken.record
    const checkpoint = await fake.checkpoints.open('s', epoch)
    await put(checkpoint, { [text]: text })
    await events.append('s', [{ type: 'session:notice', data: { text } }], { epoch })
    return checkpoint
  }
  await (await work('before', 1)).close()
  await vi.waitFor(async () => {
    const [now, record] = [await sessions.now(), await sessions.get('s')]
    expect(now).toBeGreaterThan((record?.activeAt ?? now) + 1)
  })
  const remover: { remove(id: string, epoch: number): Promise<void> } = part === 'events' ? events : fake.checkpoints
  const { remove } = remover
  // As if this instance had stood still until its removal arrives.
  vi.spyOn(remover, 'remove').mockImplementationOnce(async (id, epoch) => {
    await (await work('after', 60_000)).close()
    return remove(id, epoch)
  })
  await manager.janitor.round()
  expect(fake.forgotten).toEqual([])
  expect((await events.read('s')).map(({ data }) => data.text)).toEqual(['before', 'after'])
  const { epoch = 0 } = (await sessions.get('s')) ?? {}
  const checkpoint = await fake.checkpoints.open('s', epoch)
  const kept = Object.keys(await filesOf(checkpoint))
  await checkpoint.close()
  expect(kept).toEqual(part === 'events' ? ['after'] : ['before', 'after'])
})

describe('containers that no session is bound to', () => {
  const one = { orphanGraceMs: 0, janitorIntervalMs: 3_600_000 }

  it('are removed once for all instances that share an engine; the others look after their own', async () => {
    fake.engine.isShared = true
    const [first, second] = [await fake.start('one', one), await fake.start('two', one)]
    const deployment = await fake.store.sessions.deploymentId()
    const lists = vi.spyOn(fake.engine, 'list')
    const swept = fake.engine.swept.length
    for (const instance of ['two', 'unknown']) await fake.engine.create({ deployment, instance })
    await second.janitor.round()
    await second.janitor.round()
    expect([...fake.engine.containers.values()].map(({ owner }) => owner.instance)).toEqual(['unknown'])
    expect(lists.mock.calls).toEqual([
      [deployment, 'two'],
      [deployment, 'two']
    ])
    expect(fake.engine.swept).toHaveLength(swept)
    await first.janitor.round()
    await first.janitor.round()
    expect(fake.engine.containers.size).toBe(0)
    expect(fake.engine.swept.slice(swept)).toEqual([deployment, deployment])
  })

  it('are removed by another instance as soon as the one that did it has ended', async () => {
    fake.engine.isShared = true
    const [first, second] = [await fake.start('one', one), await fake.start('two', one)]
    await first.janitor.round()
    // As after a kill: its heartbeat has expired.
    await fake.store.sessions.signOff('one')
    await fake.engine.create({ deployment: await fake.store.sessions.deploymentId(), instance: 'one' })
    await second.janitor.round()
    expect(fake.engine.containers.size).toBe(0)
  })

  it('go at once when their instance has ended, and when seen twice if the store never heard of it; those of live ones stay', async () => {
    const manager = await fake.start('one', one)
    await fake.start('live', one)
    await fake.store.sessions.heartbeat('ended', 60_000)
    await fake.store.sessions.signOff('ended')
    const deployment = await fake.store.sessions.deploymentId()
    const [live, ended, unknown] = await Promise.all(
      ['live', 'ended', 'unknown'].map((instance) => fake.engine.create({ deployment, instance }))
    )
    await Promise.all([manager.sweep(), manager.janitor.round()])
    expect([...fake.engine.containers.keys()].toSorted()).toEqual([live, unknown].toSorted())
    expect(fake.log.filter(({ containerId }) => containerId === ended)).toHaveLength(1)
    await manager.janitor.round()
    expect([...fake.engine.containers.keys()]).toEqual([live])
  })

  it('all stay for a while after the store was emptied, because it proves nothing then', async () => {
    const manager = await fake.start('one', { ...one, orphanGraceMs: 3_600_000 })
    const deployment = await fake.store.sessions.deploymentId()
    await fake.store.sessions.signOff('ended')
    const id = await fake.engine.create({ deployment, instance: 'ended' })
    await manager.janitor.round()
    await manager.sweep()
    await manager.janitor.round()
    expect([...fake.engine.containers.keys()]).toEqual([id])
  })
})

describe('a sandbox that claims to have seen a later owner than there ever was', () => {
  /** Does what a command in the container can do: every server that is started from now on is told that its time is over. */
  async function lockOut(manager: SessionManager): Promise<string> {
    await write(manager, 's', 'kept')
    const id = await containerOf(manager, 's')
    const container = fake.engine.containers.get(id)
    if (!container) throw new Error('no container')
    container.epoch = Number.MAX_SAFE_INTEGER
    await container.connection?.close()
    return id
  }

  // Checked: if the container is believed, the session has no sandbox any more.
  it('is replaced, with the files as last saved', async () => {
    const manager = await fake.start('one')
    const before = await lockOut(manager)
    const after = await containerOf(manager, 's')
    expect(after).not.toBe(before)
    expect(fake.engine.containers.get(after)?.files.get('a')).toBe('kept')
    expect([...fake.engine.containers.keys()]).toEqual([after])
  })

  it('is recycled like any other', async () => {
    const manager = await fake.start('one', { idleMs: 0 })
    await lockOut(manager)
    await vi.waitFor(async () => {
      await manager.janitor.round()
      expect(fake.engine.containers.size).toBe(0)
    })
    expect(await fake.store.sessions.countLive()).toBe(0)
  })

  it('is left alone when the store says that there is one', async () => {
    const [one, two] = [await fake.start('one'), await fake.start('two')]
    const container = await containerOf(one, 's')
    await fake.engine.containers.get(container)?.connection?.close()
    const connect = fake.engine.connect.bind(fake.engine)
    vi.spyOn(fake.engine, 'connect').mockImplementationOnce(async (id, epoch) => {
      // Slow enough for the other to take the session over.
      await fake.store.sessions.signOff('one')
      await containerOf(two, 's')
      return connect(id, epoch)
    })
    expect(await containerOf(one, 's')).toBe(container)
  })
})
