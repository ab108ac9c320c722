import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { FakeConnection } from '../../../sandbox/fake-engine.ts'
import type { ToolResult } from '../../../sandbox/port.ts'
import { type FakeSessions, fakeSessions } from '../../sandboxes/fake-sessions.ts'
import type { SessionManager } from '../../sandboxes/session-manager.ts'
import { called, type FakeChat, fakeChat, said } from '../fake-chat.ts'

let sessions: FakeSessions
let fake: FakeChat
let manager: SessionManager

beforeEach(async () => {
  sessions = await fakeSessions()
  manager = await sessions.start('a')
})
afterEach(async () => {
  vi.restoreAllMocks()
  await fake.close()
  await sessions.close()
})

const write = (path: string) => called('write_file', JSON.stringify({ path, content: path }), `w-${path}`)
const paths = ({ data }: { data: Record<string, unknown> }) =>
  (data.changes as { files: { path: string }[] }).files.map(({ path }) => path)

/** Writes as a process that a call has left running in the fork, if it was not ended. */
function writeLate(path: string): void {
  const fork = [...sessions.engine.containers.values()].at(-1)
  if (fork?.left.size) fork.files.set(path, path)
}

function leaveRunning(): void {
  const { callTool } = FakeConnection.prototype
  vi.spyOn(FakeConnection.prototype, 'callTool').mockImplementation(async function (this: FakeConnection, ...call) {
    const result: ToolResult = await callTool.apply(this, call)
    sessions.engine.containers.get(this.containerId)?.left.add('a server')
    return { ...result, structuredContent: { leftRunning: true } }
  })
}

// Seen before: the second file was in no review, and was lost.
it('ends what calls of a turn have left running before the review opens, and reviews all that it has written', async () => {
  leaveRunning()
  const steps = [write('a.txt'), said('done'), write('b.txt'), said('done')]
  fake = await fakeChat({
    model(_, step) {
      if (step === 1) writeLate('late-1.txt')
      return [steps[step] ?? said('ok')]
    },
    options: { mode: 'review' },
    on: { store: sessions.store, sessions: manager }
  })
  await fake.chat.send('s1', { text: 'one' })
  const first = await fake.until('review:opened')
  expect(paths(first)).toEqual(['a.txt', 'late-1.txt'])
  writeLate('late-2.txt')
  await manager.run('s1', async (workspace) => {
    const data = Buffer.from('mine').toString('base64')
    await workspace.change({ kind: 'write', path: 'mine.txt', data, expected: null })
    await workspace.saveFiles()
  })
  await fake.chat.send('s1', { text: 'two' })
  const second = await fake.until('review:opened', ({ turnId }) => turnId === 't2')
  expect(paths(second)).toEqual(['a.txt', 'b.txt', 'late-1.txt'])
  expect([...sessions.engine.containers.values()].at(-1)?.files.has('late-2.txt')).toBe(false)
  const { hash } = second.data.changes as { hash: string }
  await fake.chat.decideReview('s1', { reviewId: 'r-t1', hash, accept: 'all' })
  await fake.until('review:applied')
  const saved = await manager.openSaved('s1')
  expect([...saved.entries.keys()].toSorted()).toEqual(['a.txt', 'b.txt', 'late-1.txt', 'mine.txt'])
  await saved.close()
})

// Seen before: what it wrote while the card waited was lost when the person kept the changes.
it('ends what a call has left running before its preview is shown', async () => {
  leaveRunning()
  const { tidy } = FakeConnection.prototype
  vi.spyOn(FakeConnection.prototype, 'tidy').mockImplementationOnce(async function (this: FakeConnection) {
    writeLate('last.txt')
    return tidy.call(this)
  })
  fake = await fakeChat({
    model: (_, step) => [step === 0 ? write('a.txt') : said('ok')],
    options: { mode: 'preview' },
    on: { store: sessions.store, sessions: manager }
  })
  await fake.chat.send('s1', { text: 'go' })
  const { data } = await fake.until('tool:previewed')
  expect(data).toMatchObject({ leftRunning: true })
  expect(paths({ data })).toEqual(['a.txt', 'last.txt'])
  expect([...sessions.engine.containers.values()].at(-1)?.left.size).toBe(0)
})
