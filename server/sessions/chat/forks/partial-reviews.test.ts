/** A review of more files than its event lists, which is accepted in part. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { CommandData } from '../../../../contract/commands.ts'
import { FakeConnection } from '../../../sandbox/fake-engine.ts'
import { type FakeSessions, fakeSessions } from '../../sandboxes/fake-sessions.ts'
import type { SessionManager } from '../../sandboxes/session-manager.ts'
import { called, type FakeChat, fakeChat, said } from '../fake-chat.ts'

const PATHS = Array.from({ length: 150 }, (_, at) => `f${`${at}`.padStart(3, '0')}`)
let sessions: FakeSessions
let manager: SessionManager
let fake: FakeChat

beforeEach(async () => {
  sessions = await fakeSessions()
  manager = await sessions.start('a')
  vi.spyOn(FakeConnection.prototype, 'callTool').mockImplementation(async () => {
    const fork = [...sessions.engine.containers.values()].at(-1)
    for (const path of PATHS) fork?.files.set(path, path)
    return { content: [] }
  })
  fake = await fakeChat({
    model: (_, step) => [step === 0 ? called('write_file', '{"path":"f000","content":""}', 'w') : said('ok')],
    options: { mode: 'review' },
    on: { store: sessions.store, sessions: manager }
  })
})
afterEach(async () => {
  vi.restoreAllMocks()
  await fake.close()
  await sessions.close()
})

async function decide(accept: CommandData<'review:decide'>['accept']): Promise<string[]> {
  await fake.chat.send('s1', { text: 'one' })
  const { data } = await fake.until('review:opened')
  const { hash, total } = data.changes as { hash: string; total: number }
  expect(total).toBe(150)
  await fake.chat.decideReview('s1', { reviewId: 'r-t1', hash, accept })
  await fake.until('review:applied')
  const saved = await manager.openSaved('s1')
  await saved.close()
  return [...saved.entries.keys()].toSorted()
}

async function noteToModel(): Promise<string> {
  await fake.chat.send('s1', { text: 'two' })
  await fake.until('turn:end', ({ turnId }) => turnId === 't2')
  return JSON.stringify(fake.requests.at(-1)?.messages.at(-1))
}

it('tells the model which files were not accepted, also of those that the event does not list', async () => {
  expect(await decide(PATHS.slice(0, -1))).toEqual(PATHS.slice(0, -1))
  const { data } = await fake.until('review:applied')
  expect(data).toMatchObject({ rejected: ['f149'], rejectedTotal: 1 })
  expect(await noteToModel()).toContain('did not accept those of \\"f149\\": in the workspace')
})

it('can be decided by the files that are left out', async () => {
  const left = ['f007', 'f120']
  expect(await decide({ allExcept: left })).toEqual(PATHS.filter((path) => !left.includes(path)))
  const { data } = await fake.until('review:applied')
  expect(data).toMatchObject({ changes: { total: 148 }, rejected: left, rejectedTotal: 2 })
  expect(await noteToModel()).toContain('\\"f007\\", \\"f120\\": in the workspace')
})

it('refuses to leave out a file that was not shown', async () => {
  await expect(decide({ allExcept: ['nowhere'] })).rejects.toMatchObject({ code: 'invalid_request' })
})
