import { buffer } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { type FakeSessions, fakeSessions } from '../sandboxes/fake-sessions.ts'
import type { SessionManager } from '../sandboxes/session-manager.ts'
import { WorkspaceTransfer } from './workspace-transfer.ts'

let fake: FakeSessions
beforeEach(async () => {
  fake = await fakeSessions()
})
afterEach(() => fake.close())

const write = (manager: SessionManager, path: string, content: string) =>
  manager.hold('s', (hold) => hold.runTool({ callId: path, name: 'write_file', args: { path, content } }))

it('are listed and downloaded on another instance without moving the sandbox, starting one, or counting as use', async () => {
  const [one, two] = [await fake.start('one', { idleMs: 0 }), await fake.start('two', { idleMs: 0 })]
  await write(one, 'a', 'text')
  await write(one, 'deep/b', 'x'.repeat(3_000_000))
  const before = await fake.store.sessions.get('s')
  const files = new WorkspaceTransfer(two)
  const check = async () => {
    expect((await files.list('s')).files.map(({ path, size }) => [path, size])).toEqual([
      ['a', 4],
      ['deep/b', 3_000_000]
    ])
    expect(await buffer((await files.read('s', './deep/b')).chunks)).toHaveLength(3_000_000)
    expect(gunzipSync(await buffer(await files.archive('s'))).toString()).toContain('text')
    for (const path of ['../a', '/etc/passwd', 'deep', 'c', '\0'])
      await expect(files.read('s', path)).rejects.toMatchObject({ code: 'file_refused' })
  }
  await check()
  expect(await fake.store.sessions.get('s')).toEqual(before)
  await vi.waitFor(async () => {
    await one.janitor.round()
    expect(fake.engine.containers.size).toBe(0)
  })
  await check()
  expect(fake.engine.containers.size).toBe(0)
})

it('do not bring back a session that is deleted during the download', async () => {
  const one = await fake.start('one')
  await write(one, 'a', 'x'.repeat(3_000_000))
  const { chunks } = await new WorkspaceTransfer(await fake.start('two')).read('s', 'a')
  // Those wait in the queue behind the deletion, and for the next chunk.
  const deleted = one.destroy('s')
  const waiting = Promise.allSettled([one.run('s', async () => {}), one.hold('s', async () => {})])
  await deleted
  expect((await waiting).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(await buffer(chunks)).toHaveLength(3_000_000)
  expect(await fake.store.sessions.list()).toEqual([])
  expect(await fake.checkpoints.has('s')).toBe(false)
})
