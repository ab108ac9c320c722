import { afterEach, beforeEach, expect, it } from 'vitest'
import { pendingCalls } from '../../../contract/transcript.ts'
import { discard, temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import type { WorkspaceEntry } from '../../../workspace-server/protocol.ts'
import { silentLogger } from '../../lib/logger.ts'
import type { StepRequest } from '../../models/port.ts'
import type { CheckpointStore } from '../../storage/checkpoint-store.ts'
import { openCheckpointStore } from '../../storage/checkpoints/checkpoint-files.ts'
import { SessionAccess } from '../access/session-access.ts'
import { called, type FakeChat, fakeChat, said } from '../chat/fake-chat.ts'
import { SessionFeed } from '../feed/session-feed.ts'
import { sessionBranching } from './branch-session.ts'
import { SessionDirectory } from './session-directory.ts'

const desk = {
  server: 'desk',
  list: async () =>
    ['write', 'read'].map((name) => ({ name, description: `To ${name}.`, inputSchema: { type: 'object' } })),
  call: async () => ({ content: [{ type: 'text', text: 'written' }] })
}
const model = ({ messages }: StepRequest, step: number) =>
  messages.at(-1)?.role === 'tool'
    ? [said('done')]
    : [called(JSON.stringify(messages.at(-1)).includes('three') ? 'desk__read' : 'desk__write', '{}', `c${step}`)]
const me = { proof: { owner: 'me' }, address: 'here' }
let dir: string
let fake: FakeChat
let checkpoints: CheckpointStore
beforeEach(async () => {
  dir = temporaryFolder()
  fake = await fakeChat({ model, sources: [desk] })
  checkpoints = openCheckpointStore({ dir, maxSessionBytes: 1_000_000, logger: silentLogger })
})
afterEach(async () => {
  await fake.close()
  await discard(dir)
})

async function openBranching(checkQuota = async () => {}) {
  const { chat, store } = fake
  const access = new SessionAccess(store.keyValues, { MAX_OWNER_SESSIONS: 3, MAX_ADDRESS_SESSIONS: 1000 })
  const hold = (async (_id: string, job: (hold: { epoch: number }) => Promise<unknown>) => job({ epoch: 1 })) as never
  const destroy = async (id: string) => {
    await checkpoints.remove(id, 1)
    await store.events.remove(id)
  }
  const directory = new SessionDirectory({
    sessions: { hold, state: () => 'none', destroy, openIds: [], releaseLost: async () => {} },
    ...{ access, chat, feed: new SessionFeed(), logger: silentLogger, store: store.sessions, events: store.events },
    ...{ keyValues: store.keyValues, idleMs: 1000, network: 'none' }
  })
  await directory.open('s1', { owner: 'me' }, {})
  const sessions = {
    hold,
    state: () => 'none' as const,
    run: () => Promise.reject(new Error('There is no sandbox.')),
    openSaved: (id: string) => checkpoints.open(id, 1)
  }
  const transcript = (id: string) => chat.transcript(id)
  const branch = sessionBranching({ directory, sessions, checkpoints, events: store.events, transcript, checkQuota })
  return { access, branch }
}

/** Two turns, each with a call that is approved for good and runs. */
async function talk(): Promise<void> {
  for (const text of ['one', 'two']) {
    const { turnId } = await fake.chat.send('s1', { text, id: undefined })
    const isMine = (data: Record<string, unknown>) => data.turnId === turnId
    const { data } = await fake.until('tool:approval_required', isMine)
    const { calls } = await fake.chat.transcript('s1')
    const isAllowed = calls[String(data.callId)]?.decision !== undefined
    if (!isAllowed)
      await fake.chat.decide('s1', { callId: String(data.callId), approved: true, remember: text === 'one' })
    await fake.until('turn:end', isMine)
  }
}
const seqOf = async (text: string) =>
  (await fake.chat.transcript('s1')).entries.find((entry) => entry.kind === 'user' && entry.text === text)?.seq ?? 0

async function fileOf(id: string, path: string): Promise<WorkspaceEntry> {
  const checkpoint = await checkpoints.open(id, 1)
  const { hash, size } = await checkpoint.addBlob(Buffer.from(`${path} ${Math.random()}`))
  const entry: WorkspaceEntry = { type: 'file', path, mode: 420, mtimeMs: 1, size, hash }
  await checkpoint.commit({ put: [entry], deleted: [] })
  await checkpoint.close()
  return entry
}
const filesOf = async (id: string) => {
  const checkpoint = await checkpoints.open(id, 1)
  await checkpoint.close()
  return [...checkpoint.entries.values()]
}

it('is a session of its own with the conversation before that point, in which nothing waits, runs or is allowed', async () => {
  const { access, branch } = await openBranching()
  await talk()
  await fake.chat.rewind('s1', { from: await seqOf('two') })
  const { turnId } = await fake.chat.send('s1', { text: 'three', id: undefined })
  await fake.until('tool:approval_required', (data) => data.turnId === turnId)
  await fake.chat.notice('s1', 'x', 'The card waits.')
  const before = (await fake.log()).at(-1)?.seq ?? 0
  const { sessionId, title } = await branch('s1', { before, files: 'now' }, me)
  expect(title).toMatch(/\(branch\)$/)
  expect((await access.list('me')).map((meta) => meta.sessionId)).toContain(sessionId)
  const copy = await fake.chat.transcript(sessionId)
  expect(copy).toMatchObject({ turnId: null, allowed: {}, model: 'demo/demo', usage: { inputTokens: 0 } })
  expect(pendingCalls(copy)).toEqual([])
  expect(pendingCalls(await fake.chat.transcript('s1'))).toHaveLength(1)
  const texts = copy.entries.flatMap((entry) =>
    entry.kind === 'user' ? [`${entry.rewound ? '- ' : ''}${entry.text}`] : []
  )
  expect(texts).toEqual(['one', '- two', 'three'])
  const asked = fake.requests.length
  await fake.chat.send(sessionId, { text: 'go on', id: undefined })
  await expect.poll(() => fake.requests.length).toBe(asked + 1)
  const roles = fake.requests.at(-1)?.messages.map(({ role }) => role)
  expect(roles?.slice(0, 4)).toEqual(['user', 'assistant', 'tool', 'assistant'])
  expect(JSON.stringify(fake.requests.at(-1)?.messages)).not.toContain('"two"')
})

it('leaves a step of the model out as a whole, and takes the files of then, or those of now', async () => {
  const { branch } = await openBranching()
  const early = await fileOf('s1', 'early.txt')
  await talk()
  const last = (await fake.chat.transcript('s1')).entries.findLast((entry) => entry.kind === 'call')
  const late = await fileOf('s1', 'late.txt')
  const checkpoint = await checkpoints.open('s1', 1)
  const callId = last?.kind === 'call' ? last.callId : ''
  const version = { id: `call:${callId}`, kind: 'version' as const, at: 1, about: { by: 'call' as const, callId } }
  await checkpoint.commit({
    put: [late],
    deleted: [],
    keep: [{ ...version, changes: [{ path: 'late.txt', before: null, after: late }] }]
  })
  await checkpoint.close()
  const then = await branch('s1', { before: last?.seq ?? 0, files: 'then' }, me)
  expect(await filesOf(then.sessionId)).toEqual([early])
  const { entries, calls } = await fake.chat.transcript(then.sessionId)
  expect(entries.findLast(({ kind }) => kind !== 'notice')).toMatchObject({ kind: 'user', text: 'two' })
  expect(Object.values(calls)).toMatchObject([{ result: { content: [{ text: 'written' }] } }])
  const now = await branch('s1', { before: last?.seq ?? 0, files: 'now' }, me)
  expect((await filesOf(now.sessionId)).map(({ path }) => path)).toEqual(['early.txt', 'late.txt'])
})

it('leaves nothing behind when it is refused or fails', async () => {
  const { access, branch } = await openBranching()
  await talk()
  await fileOf('s1', 'a.txt')
  await expect(branch('s1', { before: 9999, files: 'now' }, me)).rejects.toMatchObject({ code: 'unknown_entry' })
  const before = await seqOf('two')
  for (let at = 0; at < 2; at++) await branch('s1', { before, files: 'now' }, me)
  const stored = await checkpoints.bytes(undefined, 0)
  await expect(branch('s1', { before, files: 'now' }, me)).rejects.toMatchObject({ code: 'too_many_sessions_of_owner' })
  expect(await access.list('me')).toHaveLength(3)
  expect(await checkpoints.bytes(undefined, 0)).toBe(stored)
})
