import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { callFailed } from '../../audit/call-end.ts'
import { AppError } from '../../lib/errors.ts'
import type { FakeEngine } from '../../sandbox/fake-engine.ts'
import type { Store } from '../../storage/store.ts'
import { storeUnavailable } from '../../storage/store-errors.ts'
import { type FakeSessions, fakeSessions } from './fake-sessions.ts'
import type { SessionManager } from './session-manager.ts'

describe('SessionManager', () => {
  let fake: FakeSessions
  let store: Store
  let engine: FakeEngine

  beforeEach(async () => {
    fake = await fakeSessions()
    store = fake.store
    engine = fake.engine
  })

  afterEach(() => fake.close())

  const create: FakeSessions['create'] = (...given) => fake.create(...given)
  const start: FakeSessions['start'] = (...given) => fake.start(...given)

  const write = (manager: SessionManager, content: string) =>
    manager.hold('s', (hold) => hold.runTool({ callId: content, name: 'write_file', args: { path: 'a', content } }))
  const containerOf = (manager: SessionManager) => manager.run('s', async ({ containerId }) => containerId)
  const notices = async () =>
    (await store.events.read('s')).filter(({ type }) => type === 'session:notice').map(({ data }) => data.code)

  it('ends a sandbox in which a process imitated its server, says so, and continues with the files', async () => {
    const manager = await start('one')
    const before = await containerOf(manager)
    engine.containers.get(before)!.tampered = true
    await write(manager, 'kept')
    expect(engine.containers.has(before)).toBe(false)
    const after = await containerOf(manager)
    expect(after).not.toBe(before)
    expect(engine.containers.get(after)!.files.get('a')).toBe('kept')
    expect(await notices()).toEqual(['sandbox_tampered', 'files_restored'])
  })

  it('counts a tab that connects again as activity', async () => {
    const manager = await start('one')
    await containerOf(manager)
    const activeAt = async () => (await store.sessions.get('s'))?.activeAt ?? 0
    const before = await activeAt()
    await expect.poll(() => Date.now()).toBeGreaterThan(before)
    manager.attach('s')()
    await expect.poll(activeAt).toBeGreaterThan(before)
  })

  it('keeps the output of a call that was stopped before it ended', async () => {
    const manager = await start('one')
    const container = engine.containers.get(await containerOf(manager))!
    vi.spyOn(container.connection!, 'callTool').mockImplementationOnce(async () => {
      container.files.set('a', 'half of it')
      throw new AppError('cancelled', 'cancelled', 'The turn was stopped.')
    })
    await expect(write(manager, 'all of it')).rejects.toMatchObject({ code: 'cancelled' })
    const saved = async () => {
      const checkpoint = await fake.checkpoints.open('s', Number.MAX_SAFE_INTEGER)
      const paths = [...checkpoint.entries.keys()]
      await checkpoint.close()
      return paths
    }
    await vi.waitFor(async () => expect(await saved()).toEqual(['a']))
    container.die()
    expect(engine.containers.get(await containerOf(manager))!.files.get('a')).toBe('half of it')
  })

  it('if such a sandbox can not be ended, the call has succeeded all the same', async () => {
    const manager = await start('one')
    engine.containers.get(await containerOf(manager))!.tampered = true
    vi.spyOn(engine, 'remove').mockRejectedValueOnce(new AppError('unavailable', 'engine_unavailable', 'away'))
    await write(manager, 'kept')
    const results = (await store.events.read('s')).filter(({ type }) => type === 'tool:result')
    expect(results).toMatchObject([{ data: { isError: false } }])
  })

  it('gives a session to no other instance until the one that works in it is done', async () => {
    const [one, two] = [await start('one'), await start('two')]
    const done = Promise.withResolvers<void>()
    const entered = Promise.withResolvers<void>()
    const first = one.run('s', async () => {
      entered.resolve()
      await done.promise
    })
    await entered.promise
    let second = false
    const waiting = containerOf(two).then(() => {
      second = true
    })
    await vi.waitFor(async () => expect(await store.sessions.get('s')).toMatchObject({ holder: 'one', busy: true }))
    expect(second).toBe(false)
    done.resolve()
    await Promise.all([first, waiting])
    expect(engine.containers.size).toBe(1)
  })

  it('gives out no sandbox into which the files do not fit: their incomplete copy would replace the saved files', async () => {
    const manager = await start('one')
    await write(manager, 'x')
    await engine.remove(await containerOf(manager))
    engine.isFull = true
    await expect(containerOf(manager)).rejects.toMatchObject({ code: 'files_do_not_fit' })
    expect(engine.containers.size).toBe(0)
    engine.isFull = false
    const read = await manager.hold('s', (hold) =>
      hold.runTool({ callId: 'r', name: 'read_file', args: { path: 'a' } })
    )
    expect(JSON.stringify(read)).toContain('x')
  })

  it('reports what another instance had started and never finished, once', async () => {
    const one = await start('one')
    await one.run('s', async ({ epoch }) => {
      await store.events.append('s', [{ type: 'tool:started', data: { callId: 'c1' } }], { epoch })
    })
    const two = await start('two')
    await containerOf(two)
    await containerOf(two)
    const results = (await store.events.read('s')).filter(({ type }) => type === 'tool:result')
    expect(results.map(({ data }) => [data.callId, data.outcome])).toEqual([['c1', 'unknown']])
  })

  it('keeps a session that was entered while the janitor was recycling it', async () => {
    const manager = await start('one', { idleMs: 0 })
    const container = engine.containers.get(await containerOf(manager))
    const [began, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const remove = engine.remove.bind(engine)
    vi.spyOn(engine, 'remove').mockImplementationOnce(async (id) => {
      began.resolve()
      await goOn.promise
      return remove(id)
    })
    container?.die()
    const working = manager.janitor.round()
    await began.promise
    manager.attach('s')() // a tab that comes and goes
    const [entered, done] = [Promise.withResolvers<string>(), Promise.withResolvers<void>()]
    const command = manager.run('s', async ({ containerId }) => {
      entered.resolve(containerId)
      await done.promise
    })
    goOn.resolve()
    await working
    const id = await entered.promise
    const stream = engine.containers.get(id)?.connection
    expect(await containerOf(manager)).toBe(id)
    expect(engine.containers.get(id)?.connection).toBe(stream)
    expect(stream?.isOpen).toBe(true)
    expect(manager.known).toBe(1)
    done.resolve()
    await command
  })

  it('forgets a session that another instance took over', async () => {
    const one = await start('one', { leaseMs: 150 })
    const two = await start('two', { leaseMs: 150 })
    await containerOf(one)
    expect(one.known).toBe(1)
    await containerOf(two)
    await vi.waitFor(() => expect(one.known).toBe(0))
    expect(two.known).toBe(1)
    expect(await containerOf(one)).toBe([...engine.containers.keys()][0])
  })

  it('goes on when the files of a checkpoint can not be closed', async () => {
    const { checkpoints } = fake
    const failed = Promise.withResolvers<void>()
    const open = checkpoints.open.bind(checkpoints)
    vi.spyOn(checkpoints, 'open').mockImplementation(async (...input) => {
      const checkpoint = await open(...input)
      const close = checkpoint.close.bind(checkpoint)
      vi.spyOn(checkpoint, 'close').mockImplementation(async () => {
        await close()
        failed.resolve()
        throw Object.assign(new Error('stale file handle'), { code: 'ESTALE' })
      })
      return checkpoint
    })
    const manager = create('one')
    const first = await containerOf(manager)
    engine.containers.get(first)?.die()
    await failed.promise // unhandled, it would end the process; here it fails the run
    expect(await containerOf(manager)).not.toBe(first)
  })

  it('leaves no container behind when its limits do not hold, and says so', async () => {
    engine.limitsFail = new AppError('unavailable', 'limits_not_enforced', 'no limit on memory')
    const manager = await start('one')
    await expect(containerOf(manager)).rejects.toMatchObject({ code: 'limits_not_enforced' })
    expect(engine.containers.size).toBe(0)
    expect(await store.sessions.countLive()).toBe(0)
    engine.limitsFail = undefined
    await containerOf(manager)
  })

  // Seen before: an approved call failed and told the model to try again in a minute.
  it('holds an approved call until the image is built; stopping the call does not wait for that', async () => {
    const { promise, resolve: finish } = Promise.withResolvers<void>()
    engine.build = promise
    const waits = vi.spyOn(engine, 'waitForBuild')
    const manager = await start('one')
    const written = write(manager, 'text')
    const stop = new AbortController()
    const call = { callId: 'c', name: 'write_file', args: { path: 'b', content: '' }, signal: stop.signal }
    const stopped = manager.hold('other', (hold) => hold.runTool(call))
    await vi.waitFor(() => expect(waits).toHaveBeenCalledTimes(2))
    stop.abort()
    await expect(stopped).rejects.toMatchObject({ code: 'cancelled' })
    expect(engine.containers.size).toBe(0)
    engine.build = undefined
    finish()
    await written
    const [container] = engine.containers.values()
    expect([...(container?.files ?? [])]).toEqual([['a', 'text']])
  })

  it('fills the pool again after the engine was away', async () => {
    engine.createFails = new AppError('unavailable', 'engine_unavailable', 'away')
    const manager = await start('one', { warmPoolSize: 2 })
    await vi.waitFor(() => expect(manager.pool.ready).toBe(0))
    engine.createFails = undefined
    await vi.waitFor(() => expect(manager.pool.ready).toBe(2))
    await manager.stop()
    expect(engine.containers.size).toBe(0)
  })

  it('labels containers that are created before its start is complete too, or nobody would ever find them', async () => {
    const manager = create('one', { warmPoolSize: 1 })
    manager.pool.fill()
    await vi.waitFor(() => expect(manager.pool.ready).toBe(1))
    const deployment = await store.sessions.deploymentId()
    expect([...engine.containers.values()].map(({ owner }) => owner)).toEqual([{ deployment, instance: 'one' }])
  })

  it('removes containers that are still being created when it stops, without waiting for them', async () => {
    const { promise: slow, reject } = Promise.withResolvers<never>()
    vi.spyOn(engine, 'connect').mockReturnValue(slow)
    const manager = await start('one', { warmPoolSize: 1 })
    await vi.waitFor(() => expect(engine.containers.size).toBe(1))
    const stopped = manager.stop()
    await vi.waitFor(() => expect(engine.containers.size).toBe(0))
    reject(new AppError('unavailable', 'container_gone', 'gone'))
    await stopped
    expect(engine.containers.size).toBe(0)
  })

  it('when it stops, waits for a sandbox that a session is just getting, and removes it; none is begun after that', async () => {
    const manager = await start('one')
    const { promise: created, resolve: create } = Promise.withResolvers<void>()
    const made = engine.create.bind(engine)
    const slow = vi.spyOn(engine, 'create').mockImplementation(async (owner) => created.then(() => made(owner)))
    const { promise: later, resolve: goOn } = Promise.withResolvers<void>()
    const second = manager.hold('t', (hold) => later.then(() => hold.workspace()))
    const first = containerOf(manager).catch(() => {})
    await vi.waitFor(() => expect(slow).toHaveBeenCalledTimes(1))
    const stopped = manager.stop()
    goOn()
    await expect(second).rejects.toMatchObject({ code: 'shutting_down' })
    create()
    await stopped
    expect(engine.containers.size).toBe(0)
    await first
    expect(engine.containers.size).toBe(0)
    expect(slow).toHaveBeenCalledTimes(1)
  })

  it('leaves no container when it stops as the last, also none of those that were killed; their files are kept', async () => {
    await write(await start('killed'), 'x')
    fake.managers.splice(0)
    await store.sessions.signOff('killed')
    const next = await start('next')
    expect(await engine.list(await store.sessions.deploymentId())).toHaveLength(1)
    await next.stop()
    expect(await engine.list(await store.sessions.deploymentId())).toEqual([])
    const read = (manager: SessionManager) =>
      manager.hold('s', (hold) => hold.runTool({ callId: 'r', name: 'read_file', args: { path: 'a' } }))
    expect(JSON.stringify(await read(await start('third')))).toContain('x')
  })

  it('takes nothing from an instance that keeps running when it stops', async () => {
    const other = await start('other')
    const containerId = await containerOf(other)
    await store.sessions.release('s', (await store.sessions.get('s'))?.epoch ?? -1)
    await (await start('going')).stop()
    expect(await containerOf(other)).toBe(containerId)
  })

  it('never uses a warm container for a second session', async () => {
    const manager = await start('one', { warmPoolSize: 1 })
    await vi.waitFor(() => expect(manager.pool.ready).toBe(1))
    const ids = await Promise.all(['a', 'b', 'c'].map((id) => manager.run(id, async ({ containerId }) => containerId)))
    expect(new Set(ids).size).toBe(3)
    await manager.destroy('a')
    expect(engine.containers.has(ids[0]!)).toBe(false)
  })

  it('removes expired sessions with files and log, and nothing else', async () => {
    const manager = await start('one', { idleMs: 0, retentionMs: 1 })
    await write(manager, 'old')
    await vi.waitFor(async () =>
      expect(await store.sessions.now()).toBeGreaterThan((await store.sessions.get('s'))!.activeAt + 1)
    )
    await manager.janitor.round()
    await manager.janitor.round()
    expect(await store.sessions.get('s')).toBeNull()
    expect(await store.events.read('s')).toEqual([])
    await manager.run('s', async (workspace) => {
      expect(engine.containers.get(workspace.containerId)!.files.size).toBe(0)
    })
  })

  it.each(['reserve', 'append'] as const)(
    'records a call as not begun if the store fails before its start (%s)',
    async (verb) => {
      let isAway = false
      const manager = fake.create('a', {}, (part) => {
        const verbs = part as Record<string, unknown>
        const work = verbs[verb]
        if (typeof work !== 'function') return part
        const faltering = async (...given: unknown[]) => {
          if (isAway) throw storeUnavailable('The store is away.')
          return work.apply(part, given)
        }
        return Object.assign(Object.create(part), { [verb]: faltering })
      })
      await manager.start()
      isAway = true
      const call = { callId: 'c1', name: 'execute_command', args: { command: 'true' } }
      const error = await manager.hold('s1', (hold) => hold.runTool(call)).catch((failure) => failure)
      const { outcome, code } = callFailed(error, 'calling')
      expect({ outcome, code }).toEqual({ outcome: 'failed', code: 'store_unavailable' })
    }
  )
})
