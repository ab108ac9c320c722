import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { FakeConnection } from '../../../sandbox/fake-engine.ts'
import { type FakeSessions, fakeSessions } from '../fake-sessions.ts'
import type { SessionManager } from '../session-manager.ts'
import type { Previewed } from './forked-work.ts'

let sessions: FakeSessions
let manager: SessionManager

beforeEach(async () => {
  sessions = await fakeSessions()
  manager = await sessions.start('a')
})
afterEach(async () => {
  vi.restoreAllMocks()
  await sessions.close()
})

const preview = (callId: string, path: string): Promise<Previewed> => {
  const call = { callId, name: 'write_file', args: { path, content: callId }, onOutput: () => {} }
  return manager.hold('s1', (hold) => hold.forks.preview(call))
}
const keep = (callId: string, { changes }: Previewed) =>
  manager.hold('s1', (hold) => hold.forks.keep(callId, changes, undefined))
const change = (job: (files: Map<string, string>) => void) =>
  manager.run('s1', async (workspace) => {
    const [sandbox] = containers()
    if (sandbox) job(sandbox.files)
    await workspace.saveFiles()
  })
const containers = () => [...sessions.engine.containers.values()]
const forkFiles = () => Object.fromEntries(containers()[1]?.files ?? [])
const pathsOf = ({ changes }: Previewed) => changes.files.map(({ path }) => path)

// Checked: with a new fork for each, the ids differ; without the sync before, `own` is left in the fork.
it('writes into a fork without open changes what the workspace has changed, instead of opening another', async () => {
  await keep('one', await preview('one', 'a.txt'))
  const fork = containers()[1]?.id
  await change((files) => void files.set('b.txt', 'upload').set('c.txt', 'upload').delete('a.txt'))
  containers()[1]?.files.set('own', 'of a process that still runs in the fork')
  const two = await preview('two', 'c.txt')
  expect(pathsOf(two)).toEqual(['c.txt'])
  expect(containers()[1]?.id).toBe(fork)
  expect(forkFiles()).toEqual({ 'b.txt': 'upload', 'c.txt': 'two' })
  expect(Object.fromEntries(containers()[0]?.files ?? [])).toEqual({ 'b.txt': 'upload', 'c.txt': 'upload' })
})

// Seen before: nobody heard of a socket, or of files in a folder that can not be read.
it('tells of what a call made in the fork that can not be kept', async () => {
  const { changes } = FakeConnection.prototype
  vi.spyOn(FakeConnection.prototype, 'changes').mockImplementation(async function (this: FakeConnection) {
    const found = await changes.call(this)
    const skipped = found.put.length > 0 ? [{ path: 'run.sock', reason: 'a socket' }] : []
    return { ...found, skipped }
  })
  await preview('one', 'a.txt')
  const notices = (await sessions.store.events.read('s1')).filter(({ type }) => type === 'session:notice')
  expect(notices.map(({ data }) => data.message)).toEqual([
    'Not among the changes that you decide on: run.sock (a socket).'
  ])
})

// Checked: if the fork is kept, its second call still finds the file that can't be read.
it('opens another fork after a decision if something was left out of the change set', async () => {
  const { changes } = FakeConnection.prototype
  const skipped = [{ path: 'secret', reason: 'Its permissions do not allow reading it.' }]
  vi.spyOn(FakeConnection.prototype, 'changes').mockImplementation(async function (this: FakeConnection) {
    const found = await changes.call(this)
    return found.put.some(({ path }) => path === 'a.txt' || path === 'own') ? { ...found, skipped } : found
  })
  await keep('one', await preview('one', 'a.txt'))
  const first = containers()[1]?.id
  const two = await preview('two', 'b.txt')
  await vi.waitFor(() => expect(containers().map(({ id }) => id)).not.toContain(first))
  expect(forkFiles()).toEqual({ 'a.txt': 'one', 'b.txt': 'two' })
  const second = containers()[1]?.id
  await keep('two', two)
  // It appears only when the fork is brought up to date.
  await change((files) => void files.set('c.txt', 'upload'))
  containers()[1]?.files.set('own', 'of a process that still runs in the fork')
  await preview('three', 'd.txt')
  await vi.waitFor(() => expect(containers().map(({ id }) => id)).not.toContain(second))
})

/** The next call leaves a process running. */
function leaveRunning(): void {
  const { callTool } = FakeConnection.prototype
  vi.spyOn(FakeConnection.prototype, 'callTool').mockImplementationOnce(async function (this: FakeConnection, ...call) {
    const result = await callTool.apply(this, call)
    containers()[1]?.left.add('a server')
    return { ...result, structuredContent: { leftRunning: true } }
  })
}

// Seen before: the second call was run beside what the first one had left running, and its changes were shown with the second.
it('ends what a call has left running before its changes are shown', async () => {
  leaveRunning()
  const one = await preview('one', 'a.txt')
  expect(one).toMatchObject({ leftRunning: true, durationMs: expect.any(Number) })
  expect(containers()[1]?.left.size).toBe(0)
  await keep('one', one)
  const two = await preview('two', 'b.txt')
  expect(pathsOf(two)).toEqual(['b.txt'])
  expect(two).not.toHaveProperty('leftRunning')
  expect(forkFiles()).toEqual({ 'a.txt': 'one', 'b.txt': 'two' })
})

// Seen before: the fork was ended with what had been written since the last call.
it.each([
  ['is idle', { pauseAfterMs: 20 }],
  ['stops', {}]
])('stores what is written while a turn waits for a person, when the instance %s', async (how, options) => {
  const other = await sessions.start('other', options)
  leaveRunning()
  const call = { callId: 'one', name: 'write_file', args: { path: 'a.txt', content: 'x' }, onOutput: () => {} }
  const onEnd = vi.spyOn(FakeConnection.prototype, 'tidy').mockImplementationOnce(async () => {
    containers()[1]?.files.set('late.txt', 'written until the end')
    return true
  })
  await other.hold('s1', (hold) => hold.forks.run(call, 't1'))
  if (how === 'stops') await other.stop()
  await vi.waitFor(() => expect(other.openForks).toBe(0))
  expect(onEnd).toHaveBeenCalled()
  const saved = await manager.openSaved('s1')
  const set = saved.changeSets.get('review:r-t1')
  expect(set?.changes.map(({ path }) => path)).toEqual(['a.txt', 'late.txt'])
  await saved.close()
})

it('ends the fork if what a call has left running can not be ended', async () => {
  leaveRunning()
  vi.spyOn(FakeConnection.prototype, 'tidy').mockResolvedValueOnce(false)
  const one = await preview('one', 'a.txt')
  expect(manager.openForks).toBe(0)
  await keep('one', one)
  expect(Object.fromEntries(containers()[0]?.files ?? [])).toEqual({ 'a.txt': 'one' })
})

it('opens another fork if the first can not be tidied', async () => {
  await keep('one', await preview('one', 'a.txt'))
  const first = containers()[1]?.id
  const two = await preview('two', 'b.txt')
  expect(containers()[1]?.id).toBe(first)
  vi.spyOn(FakeConnection.prototype, 'tidy').mockResolvedValue(false)
  await keep('two', two)
  await preview('three', 'c.txt')
  await vi.waitFor(() => expect(containers().map(({ id }) => id)).not.toContain(first))
  expect(forkFiles()).toEqual({ 'a.txt': 'one', 'b.txt': 'two', 'c.txt': 'three' })
})

it('opens another fork if the first has changes that nobody kept, or can not be brought up to date', async () => {
  await preview('one', 'a.txt')
  const first = containers()[1]?.id
  const two = await preview('two', 'b.txt')
  await vi.waitFor(() => expect(containers().map(({ id }) => id)).not.toContain(first))
  expect(forkFiles()).toEqual({ 'b.txt': 'two' })
  await keep('two', two)
  const second = containers()[1]?.id
  await change((files) => void files.set('c.txt', 'upload'))
  vi.spyOn(FakeConnection.prototype, 'restore').mockResolvedValueOnce({
    failed: [{ path: 'c.txt', reason: 'A folder is in the way.', noRoom: false }]
  })
  await preview('three', 'd.txt')
  await vi.waitFor(() => expect(containers()).toHaveLength(2))
  expect(containers()[1]?.id).not.toBe(second)
  expect(forkFiles()).toEqual({ 'b.txt': 'two', 'c.txt': 'upload', 'd.txt': 'three' })
})

// Seen before: the fork stayed until the server stopped, because only a running sandbox is ever paused.
it('closes the fork of a session that another instance has taken over', async () => {
  const first = await sessions.start('first', { leaseMs: 60 })
  const call = { callId: 'one', name: 'write_file', args: { path: 'a.txt', content: 'x' }, onOutput: () => {} }
  await first.hold('s1', (hold) => hold.forks.preview(call))
  expect(containers()).toHaveLength(2)
  await manager.run('s1', async () => {})
  await vi.waitFor(() => expect(containers()).toHaveLength(1))
  expect(first.openForks).toBe(0)
})

// Checked: if nobody waits for the removal, the manager has stopped before it.
it('leaves no fork behind when the server stops while one is being removed', async () => {
  await preview('one', 'a.txt')
  const order: string[] = []
  const { remove } = sessions.engine
  const { promise, resolve } = Promise.withResolvers<void>()
  vi.spyOn(sessions.engine, 'remove').mockImplementationOnce(async (id) => {
    await promise
    order.push('removed')
    return remove.call(sessions.engine, id)
  })
  await preview('two', 'b.txt')
  const stopped = manager.stop().then(() => order.push('stopped'))
  await vi.waitFor(() => expect(containers().length).toBeLessThan(3))
  resolve()
  await stopped
  expect(order).toEqual(['removed', 'stopped'])
  expect(containers()).toEqual([])
})
