import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { FakeConnection } from '../../../sandbox/fake-engine.ts'
import type { ToolResult } from '../../../sandbox/port.ts'
import { type FakeSessions, fakeSessions } from '../../sandboxes/fake-sessions.ts'
import { called, type FakeChat, fakeChat, said } from '../fake-chat.ts'

let sessions: FakeSessions
let fake: FakeChat

beforeEach(async () => {
  sessions = await fakeSessions()
})
afterEach(async () => {
  vi.restoreAllMocks()
  await fake.close()
  await sessions.close()
})

const write = (path: string) => called('write_file', JSON.stringify({ path, content: path }), `w-${path}`)
const paths = ({ data }: { data: Record<string, unknown> }) =>
  (data.changes as { files: { path: string }[] }).files.map(({ path }) => path)

/** A process in the fork writes a file. */
function writeLate(path: string): void {
  const fork = [...sessions.engine.containers.values()].at(-1)
  fork?.files.set(path, path)
}

// Seen before: the first file was not in the review, and the second was deleted in the fork when the workspace changed.
it('reviews what processes that a call left running have written since', async () => {
  const manager = await sessions.start('a')
  const { callTool } = FakeConnection.prototype
  vi.spyOn(FakeConnection.prototype, 'callTool').mockImplementation(async function (this: FakeConnection, ...call) {
    const result: ToolResult = await callTool.apply(this, call)
    return { ...result, structuredContent: { leftRunning: true } }
  })
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
  expect(paths(second)).toEqual(['a.txt', 'b.txt', 'late-1.txt', 'late-2.txt'])
  const { hash } = second.data.changes as { hash: string }
  await fake.chat.decideReview('s1', { reviewId: 'r-t1', hash, accept: 'all' })
  await fake.until('review:applied')
  const saved = await manager.openSaved('s1')
  expect([...saved.entries.keys()].toSorted()).toEqual(['a.txt', 'b.txt', 'late-1.txt', 'late-2.txt', 'mine.txt'])
  await saved.close()
})
