/** Programs that call the sandbox, in each approval mode, with the real session manager and its forks. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { callsOfProgram } from '../../../../contract/programs.ts'
import { localRealm } from '../../../code/realms/local-realm.fixture.ts'
import { type FakeSessions, fakeSessions } from '../../sandboxes/fake-sessions.ts'
import type { SessionManager } from '../../sandboxes/session-manager.ts'
import type { SessionsOptions } from '../../sandboxes/session-options.ts'
import { called, type FakeChat, fakeChat, said } from '../fake-chat.ts'

const CODE = `const write = (path) => tools.workspace.write_file({ path, content: 'by a program' })
const both = await Promise.all([write('a.txt'), write('b.txt')])
both`
const other = {
  server: 'other',
  list: async () => [{ name: 'x', inputSchema: { type: 'object' } }],
  call: async () => ({ content: [] })
}

let sessions: FakeSessions
let manager: SessionManager
let fake: FakeChat
beforeEach(async () => {
  sessions = await fakeSessions()
})
afterEach(async () => {
  await fake.close()
  await sessions.close()
})

async function start(
  mode: 'ask' | 'preview' | 'review',
  options: Partial<SessionsOptions> = {},
  sources = [other]
): Promise<void> {
  manager = await sessions.start('a', options)
  fake = await fakeChat({
    model: (_, step) => [step === 0 ? called('run_code', JSON.stringify({ code: CODE }), 'prog') : said('ok')],
    ...{ options: { mode }, on: { store: sessions.store, sessions: manager }, sources },
    programs: { openRealm: async () => localRealm(), lingerMs: 5, pollMs: 2 }
  })
  await fake.chat.send('s1', { text: 'go', id: undefined })
}

async function savedFiles(): Promise<string[]> {
  const saved = await manager.openSaved('s1')
  const paths = [...saved.entries.keys()]
  await saved.close()
  return paths
}
const inner = async () => callsOfProgram((await fake.chat.transcript('s1')).calls, 'prog')

it.each(['ask', 'preview'] as const)('asks before it writes in the mode %s', async (mode) => {
  await start(mode)
  await expect.poll(async () => (await inner()).filter(({ decision }) => !decision).length).toBe(2)
  expect(await savedFiles()).toEqual([])
  for (const { callId, hash, ahead, target } of await inner()) {
    expect(ahead).toBeUndefined()
    expect(target?.path).toMatch(/[ab]\.txt$/)
    await fake.chat.decide('s1', { callId, hash, approved: true })
  }
  await fake.until('turn:end')
  expect(await savedFiles()).toEqual(['a.txt', 'b.txt'])
  const { data } = await fake.until('tool:result', ({ callId }) => callId === 'prog')
  expect(JSON.stringify(data.content)).toContain('by a program')
})

it('works in a session without MCP servers', async () => {
  await start('ask', {}, [])
  await expect.poll(async () => (await inner()).filter(({ decision }) => !decision).length).toBe(2)
  for (const { callId, hash } of await inner()) await fake.chat.decide('s1', { callId, hash, approved: true })
  await fake.until('turn:end')
  expect(await savedFiles()).toEqual(['a.txt', 'b.txt'])
})

it('writes into the fork of the turn in the mode review, and the person decides at its end', async () => {
  await start('review')
  const { data } = await fake.until('review:opened')
  expect(data).toMatchObject({ changes: { total: 2 } })
  expect((await inner()).map(({ decision, result }) => [decision?.by, result?.isForked])).toEqual([
    ['review', true],
    ['review', true]
  ])
  expect(await savedFiles()).toEqual([])
})

it('asks before it writes in the mode review if there is no room for a fork', async () => {
  await start('review', { maxSessions: 1 })
  const refused = async () => (await inner()).filter(({ again, decision }) => again && !decision)
  await expect.poll(async () => (await refused()).length).toBe(2)
  for (const { callId, hash, ahead, again, target } of await refused()) {
    expect([ahead, again?.reason]).toEqual([undefined, expect.stringContaining('could not run in a fork')])
    expect(target?.path).toMatch(/[ab]\.txt$/)
    await fake.chat.decide('s1', { callId, hash, approved: true })
  }
  await fake.until('turn:end')
  expect(await savedFiles()).toEqual(['a.txt', 'b.txt'])
  expect((await inner()).map(({ result }) => [result?.isError, result?.isForked])).toEqual([
    [false, undefined],
    [false, undefined]
  ])
})
