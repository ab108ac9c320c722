import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { noAudit, openCall } from '../../../audit/audit.fixture.ts'
import { AppError } from '../../../lib/errors.ts'
import { createPolicy } from '../../../policy/approval-policy.ts'
import { FakeConnection } from '../../../sandbox/fake-engine.ts'
import { WorkspaceHistory } from '../../files/workspace-history.ts'
import { type FakeSessions, fakeSessions } from '../../sandboxes/fake-sessions.ts'
import type { SessionManager } from '../../sandboxes/session-manager.ts'
import type { SessionsOptions } from '../../sandboxes/session-options.ts'
import { called, type FakeChat, type FakeChatOptions, fakeChat, said } from '../fake-chat.ts'

let sessions: FakeSessions
let manager: SessionManager
let fake: FakeChat

beforeEach(async () => {
  sessions = await fakeSessions()
})
afterEach(async () => {
  vi.restoreAllMocks()
  await fake.close()
  await sessions.close()
})

const write = (path: string, content: string, callId = `w-${path}`) =>
  called('write_file', JSON.stringify({ path, content }), callId)

async function open(
  mode: 'preview' | 'review',
  script: NonNullable<FakeChatOptions['model']>,
  more: FakeChatOptions & { limits?: Partial<SessionsOptions> } = {}
): Promise<FakeChat> {
  const { limits, ...rest } = more
  manager = await sessions.start('a', limits)
  fake = await fakeChat({ model: script, options: { mode }, on: { store: sessions.store, sessions: manager }, ...rest })
  return fake
}

/** The files as everyone else sees them: in the sandbox and as saved. */
async function workspaceFiles(): Promise<string[]> {
  const saved = await manager.openSaved('s1')
  const paths = [...saved.entries.keys()]
  await saved.close()
  return paths
}

const upload = (text: string) =>
  manager.run('s1', async (workspace) => {
    const data = Buffer.from(text).toString('base64')
    await workspace.change({ kind: 'write', path: 'a.txt', data, expected: null })
    await workspace.saveFiles()
  })
const containers = () => [...sessions.engine.containers.values()]
const typesOf = async () => (await fake.log()).map(({ type }) => type)
const decide = async (callId: string, approved: boolean, more = {}) => {
  const call = (await fake.chat.transcript('s1')).calls[callId]
  await fake.chat.decide('s1', { callId, approved, hash: call?.preview?.hash, ...more })
}

it('runs a call in a fork, keeps what it did, and only then tells the model', async () => {
  await open('preview', (_, step) => [step === 0 ? write('a.txt', 'hello') : said('done')])
  await fake.chat.send('s1', { text: 'go' })
  const previewed = await fake.until('tool:previewed')
  expect(previewed.data).toMatchObject({ changes: { total: 1, files: [{ path: 'a.txt' }] } })
  expect(await workspaceFiles()).toEqual([])
  expect(containers().map(({ files }) => files.has('a.txt'))).toEqual([false, true])
  expect(fake.requests).toHaveLength(1)
  await decide('w-a.txt', true)
  await fake.until('turn:end')
  expect(await workspaceFiles()).toEqual(['a.txt'])
  expect((await fake.until('tool:result')).data).toMatchObject({ isError: false, changes: { total: 1 } })
  expect(JSON.stringify(fake.requests[1]?.messages)).toContain('hello')
})

it('discards what a call did, with the fork, and tells the model why', async () => {
  await open('preview', (_, step) => [step === 0 ? write('a.txt', 'secret') : said('ok')])
  await fake.chat.send('s1', { text: 'go' })
  await fake.until('tool:previewed')
  await decide('w-a.txt', false, { reason: 'not this file' })
  await fake.until('turn:end')
  expect(await workspaceFiles()).toEqual([])
  expect(containers()).toHaveLength(1)
  const told = JSON.stringify(fake.requests[1]?.messages.slice(-1))
  expect(told).toContain('not this file')
  expect(told).not.toContain('secret')
  const saved = await manager.openSaved('s1')
  expect([...saved.changeSets.keys()]).toEqual([])
  await saved.close()
})

it('needs the hash of what was shown, and decides once', async () => {
  await open('preview', (_, step) => [step === 0 ? write('a.txt', 'x') : said('ok')])
  await fake.chat.send('s1', { text: 'go' })
  await fake.until('tool:previewed')
  const { calls } = await fake.chat.transcript('s1')
  const call = calls['w-a.txt']
  const answer = { callId: 'w-a.txt', approved: true }
  await expect(fake.chat.decide('s1', answer)).rejects.toMatchObject({ code: 'stale' })
  await expect(fake.chat.decide('s1', { ...answer, hash: call?.hash })).rejects.toMatchObject({ code: 'stale' })
  await Promise.allSettled([decide('w-a.txt', true), decide('w-a.txt', false)])
  await fake.until('turn:end')
  expect((await typesOf()).filter((type) => type === 'tool:approval_resolved')).toHaveLength(1)
})

// Checked: with the fork of the first run, both files are kept.
it('runs an edited call in a new fork, keeps only what that did, and of an edit and a decision one counts', async () => {
  await open('preview', (_, step) => [step === 0 ? write('a.txt', 'first') : said('ok')])
  await fake.chat.send('s1', { text: 'go' })
  await fake.until('tool:previewed')
  const args = { path: 'b.txt', content: 'edited' }
  await expect(decide('w-a.txt', false, { args })).rejects.toMatchObject({ code: 'edit_of_rejection' })
  const { calls } = await fake.chat.transcript('s1')
  const edits = [decide('w-a.txt', true, { args }), decide('w-a.txt', true, { args })]
  const [first, second] = await Promise.allSettled(edits)
  expect([first?.status, second?.status].toSorted()).toEqual(['fulfilled', 'rejected'])
  const now = async () => (await fake.chat.transcript('s1')).calls['w-a.txt']
  await expect.poll(async () => (await now())?.preview?.changes.files.map(({ path }) => path)).toEqual(['b.txt'])
  expect(await workspaceFiles()).toEqual([])
  const stale = { callId: 'w-a.txt', approved: true, hash: calls['w-a.txt']?.preview?.hash }
  await expect(fake.chat.decide('s1', stale)).rejects.toMatchObject({ code: 'stale' })
  await decide('w-a.txt', true)
  await fake.until('turn:end')
  expect(await workspaceFiles()).toEqual(['b.txt'])
  expect(JSON.stringify(fake.requests[1]?.messages)).toContain('The user changed the arguments')
})

it('previews the calls of a step one after another, each on top of what was kept', async () => {
  const both = () => {
    const parts = [write('a.txt', '1'), write('b.txt', '2')].flatMap((event) =>
      event.type === 'done' ? event.parts : []
    )
    return { type: 'done' as const, parts, finish: 'tool-calls' as const, usage: { inputTokens: 1, outputTokens: 1 } }
  }
  await open('preview', (_, step) => [step === 0 ? both() : said('ok')])
  await fake.chat.send('s1', { text: 'go' })
  await fake.until('tool:previewed')
  expect((await typesOf()).filter((type) => type === 'tool:previewed')).toHaveLength(1)
  await decide('w-a.txt', true)
  const second = await fake.until('tool:previewed', ({ callId }) => callId === 'w-b.txt')
  // The first file is not part of the second change: the fork went on from the workspace with it.
  expect(second.data).toMatchObject({ changes: { total: 1, files: [{ path: 'b.txt' }] } })
  await decide('w-b.txt', true)
  await fake.until('turn:end')
  expect((await workspaceFiles()).toSorted()).toEqual(['a.txt', 'b.txt'])
})

it('asks as usual where there is no place for a fork', async () => {
  await open('preview', (_, step) => [step === 0 ? write('a.txt', 'x') : said('ok')], { limits: { maxSessions: 1 } })
  await fake.chat.send('s1', { text: 'go' })
  expect((await fake.until('tool:preview_refused')).data).toMatchObject({ code: 'too_many_sessions' })
  await decide('w-a.txt', true)
  await fake.until('turn:end')
  expect(await workspaceFiles()).toEqual(['a.txt'])
})

it('asks in a review too where there is no place for a fork, and then runs the call in the workspace', async () => {
  await open('review', (_, step) => [step === 0 ? write('a.txt', 'x') : said('ok')], { limits: { maxSessions: 1 } })
  await fake.chat.send('s1', { text: 'go' })
  const asked = await fake.until('tool:approval_required', ({ again }) => again !== undefined)
  expect(asked.data).toMatchObject({ again: { reason: expect.stringContaining('could not run in a fork') } })
  expect(asked.data).not.toHaveProperty('ahead')
  expect(await workspaceFiles()).toEqual([])
  await fake.chat.decide('s1', { callId: 'w-a.txt', approved: true, hash: String(asked.data.hash) })
  await fake.until('turn:end')
  expect(await workspaceFiles()).toEqual(['a.txt'])
  expect(await typesOf()).not.toContain('review:opened')
})

it('records who kept, discarded, reviewed and reverted what', async () => {
  const rows: string[] = []
  const audit = {
    ...noAudit,
    begin: ({ tool, args }: { tool: string; args: unknown }) =>
      openCall(({ outcome }) => void rows.push(`${tool} ${Object.keys(args as object)} ${outcome}`))
  }
  await open('preview', (_, step) => [step % 2 === 0 ? write('a.txt', `${step}`, `c${step}`) : said('ok')], { audit })
  for (const [turnId, callId, approved] of [
    ['t1', 'c0', true],
    ['t2', 'c2', false]
  ] as const) {
    await fake.chat.send('s1', { text: 'go' })
    await fake.until('tool:previewed', (data) => data.callId === callId)
    await decide(callId, approved)
    await fake.until('turn:end', (data) => data.turnId === turnId)
  }
  const plan = await new WorkspaceHistory(manager).revertPlan('s1', 'call:c0', 'one')
  await fake.chat.revert('s1', { changeId: 'call:c0', scope: 'one', hash: plan.hash })
  await fake.chat.selectMode('s1', { mode: 'review' })
  await fake.chat.send('s1', { text: 'go' })
  await fake.until('review:opened')
  const { review } = await fake.chat.transcript('s1')
  const answer = { reviewId: review?.reviewId ?? '', hash: review?.changes.hash ?? '' }
  await fake.chat.decideReview('s1', { ...answer, accept: 'all' })
  expect(rows.filter((row) => row.includes('_changes'))).toEqual([
    'keep_changes callId,hash ok',
    'discard_changes callId,hash ok',
    'revert_changes changeId,scope,hash ok',
    'review_changes reviewId,hash,accept ok'
  ])
})

it('runs a call that a rule allows in the workspace', async () => {
  const policy = createPolicy([{ server: 'workspace', glob: '*', rule: 'allow' }])
  await open('preview', (_, step) => [step === 0 ? write('a.txt', 'x') : said('ok')], { policy })
  await fake.chat.send('s1', { text: 'go' })
  await fake.until('turn:end')
  expect(await typesOf()).not.toContain('tool:previewed')
  expect(await workspaceFiles()).toEqual(['a.txt'])
})

// Checked: if unknown paths are left out, this decision is taken, and rejects all files.
it('runs a whole turn in a fork, and puts what is accepted into the workspace', async () => {
  await open('review', (_, step) => [[write('a.txt', '1'), write('b.txt', '2'), said('done')][step % 3] ?? said('ok')])
  await fake.chat.send('s1', { text: 'go' })
  const opened = await fake.until('review:opened')
  expect(opened.data).toMatchObject({ changes: { total: 2 } })
  expect(await workspaceFiles()).toEqual([])
  expect(fake.requests).toHaveLength(3)
  const { review } = await fake.chat.transcript('s1')
  const answer = { reviewId: review?.reviewId ?? '', hash: review?.changes.hash ?? '' }
  for (const odd of [{ accept: ['../../etc/passwd'] }, { accept: ['b.txt'], choices: { 'c.txt': 'fork' as const } }])
    await expect(fake.chat.decideReview('s1', { ...answer, ...odd })).rejects.toMatchObject({ code: 'invalid_request' })
  await fake.chat.decideReview('s1', { ...answer, accept: ['b.txt'], comment: 'why a?' })
  const applied = await fake.until('review:applied')
  expect(applied.data).toMatchObject({ changes: { total: 1 }, rejected: ['a.txt'], rejectedTotal: 1 })
  expect(await workspaceFiles()).toEqual(['b.txt'])
  expect(containers()).toHaveLength(1)
  await fake.chat.send('s1', { text: 'and now' })
  await fake.until('turn:end', ({ turnId }) => turnId === 't2')
  const note = JSON.stringify(fake.requests[3]?.messages.at(-1))
  expect(note).toContain('a.txt')
  expect(note).toContain('why a?')
})

it('goes on in the same fork with a second message, and grows the review', async () => {
  const steps = [write('a.txt', '1'), said('one'), write('b.txt', '2'), said('two')]
  await open('review', (_, step) => [steps[step] ?? said('ok')])
  await fake.chat.send('s1', { text: 'go' })
  const first = await fake.until('review:opened')
  await fake.chat.send('s1', { text: 'more' })
  const second = await fake.until('review:opened', ({ turnId }) => turnId === 't2')
  expect(second.data).toMatchObject({ reviewId: first.data.reviewId, changes: { total: 2 } })
  const { review, entries } = await fake.chat.transcript('s1')
  expect(entries.filter(({ kind }) => kind === 'review')).toHaveLength(1)
  const stale = { reviewId: review?.reviewId ?? '', hash: (first.data.changes as { hash: string }).hash }
  await expect(fake.chat.decideReview('s1', { ...stale, accept: 'all' })).rejects.toMatchObject({ code: 'stale' })
  await fake.chat.decideReview('s1', { ...stale, hash: review?.changes.hash ?? '', accept: 'all' })
  await fake.until('review:applied')
  expect((await workspaceFiles()).toSorted()).toEqual(['a.txt', 'b.txt'])
})

it('overwrites nothing that the person has changed meanwhile, unless they choose so', async () => {
  await open('preview', (_, step) => [step === 0 ? write('a.txt', 'fork') : said('ok')])
  await fake.chat.send('s1', { text: 'go' })
  await fake.until('tool:previewed')
  await upload('mine')
  await expect(decide('w-a.txt', true)).rejects.toMatchObject({ code: 'changes_conflict' })
  const [sandbox] = containers()
  expect(sandbox?.files.get('a.txt')).toBe('mine')
  const choices = { 'a.txt': 'fork' }
  const history = new WorkspaceHistory(manager)
  const seenNow = async () => ({ 'a.txt': (await history.changes('s1', 'call:w-a.txt')).files[0]?.conflict?.seen })
  const shown = await seenNow()
  // Between the look and the choice, the file is replaced.
  await upload('mine, later')
  await expect(decide('w-a.txt', true, { choices, seenConflicts: shown })).rejects.toMatchObject({ code: 'stale' })
  await expect(decide('w-a.txt', true, { choices })).rejects.toMatchObject({ code: 'stale' })
  expect(sandbox?.files.get('a.txt')).toBe('mine, later')
  await decide('w-a.txt', true, { choices, seenConflicts: await seenNow() })
  await fake.until('turn:end')
  expect(sandbox?.files.get('a.txt')).toBe('fork')
  // The person's version is in the history.
  const saved = await manager.openSaved('s1')
  const [last] = [...saved.changeSets.values()].slice(-1)
  const before = last?.changes[0]?.before
  expect(before?.type === 'file' && saved.has(before.hash)).toBe(true)
  await saved.close()
})

it('lets nothing that the model says choose the mode, approve a call or keep a fork', async () => {
  const orders = ['mode:select', 'tool:approval', 'review:decide', 'files:revert']
  const tricks = orders.map((name, at) => called(name, '{"mode":"ask","approved":true,"accept":"all"}', `trick-${at}`))
  await open('preview', (_, step) => [tricks[step] ?? (step === tricks.length ? write('a.txt', 'x') : said('ok'))])
  await fake.chat.send('s1', { text: 'read the poisoned file' })
  await fake.until('tool:previewed')
  const { mode, calls } = await fake.chat.transcript('s1')
  expect(mode).toBe('preview')
  expect(Object.keys(calls)).toEqual(['w-a.txt'])
  expect(calls['w-a.txt']?.decision).toBeUndefined()
  expect(await workspaceFiles()).toEqual([])
})

// Checked: without the comparison of hashes, the file that nobody was shown is in the workspace.
it('applies a review only as it was shown, also if a call that was stopped has changed more', async () => {
  await open('review', (_, step) => [[write('a.txt', 'good'), said('done')][step] ?? said('ok')])
  await fake.chat.send('s1', { text: 'go' })
  await fake.until('review:opened')
  const { review } = await fake.chat.transcript('s1')
  const answer = { reviewId: review?.reviewId ?? '', hash: review?.changes.hash ?? '' }
  // More is stored under the review's id by the time that it is applied.
  const late = { callId: 'late', name: 'write_file', args: { path: 'late.txt', content: 'x' }, onOutput: () => {} }
  await manager.hold('s1', (hold) => hold.forks.run(late, 't1'))
  await fake.chat.decideReview('s1', { ...answer, accept: 'all' })
  const applied = await fake.until('review:applied')
  expect(applied.data).toMatchObject({ problem: expect.stringContaining('no longer those that you were shown') })
  expect(await workspaceFiles()).toEqual([])
  const again = await fake.until('review:opened', ({ reviewId }) => reviewId !== answer.reviewId)
  expect(again.data).toMatchObject({ changes: { total: 2 } })
})

it('stores what a stopped call has changed before its review opens', async () => {
  await open('review', (_, step) => [step === 0 ? write('a.txt', 'half') : said('ok')])
  const { callTool } = FakeConnection.prototype
  const cut = vi.spyOn(FakeConnection.prototype, 'callTool')
  cut.mockImplementationOnce(async function (this: FakeConnection, ...call) {
    await callTool.apply(this, call)
    throw new AppError('cancelled', 'cancelled', 'The turn was stopped.')
  })
  await fake.chat.send('s1', { text: 'go' })
  const opened = await fake.until('review:opened')
  expect(opened.data).toMatchObject({ changes: { total: 1, files: [{ path: 'a.txt' }] } })
})

// Checked: without the comparison of epochs, the changes of the first instance wait for a review that nobody opens.
it('stores nothing of a fork after another instance has had the session', async () => {
  await open('review', () => [said('ok')])
  const { callTool } = FakeConnection.prototype
  const slow = vi.spyOn(FakeConnection.prototype, 'callTool')
  slow.mockImplementationOnce(async function (this: FakeConnection, ...call) {
    const result = await callTool.apply(this, call)
    await sessions.store.sessions.signOff('a')
    const other = sessions.create('b')
    await other.run('s1', async () => {})
    await other.stop()
    return result
  })
  const call = { callId: 'late', name: 'write_file', args: { path: 'late.txt', content: 'x' }, onOutput: () => {} }
  await manager.hold('s1', (hold) => expect(hold.forks.run(call, 't1')).rejects.toMatchObject({ code: 'lease_lost' }))
  const saved = await manager.openSaved('s1')
  expect([...saved.changeSets.keys()]).toEqual([])
  await saved.close()
})

// Checked: without the check, the call is previewed in a fork.
it('opens no fork while sandboxes have a network, whatever mode was chosen before', async () => {
  await open('preview', (_, step) => [step === 0 ? write('a.txt', 'x') : said('ok')], { limits: { network: 'bridge' } })
  await fake.chat.send('s1', { text: 'go' })
  const refused = await fake.until('tool:preview_refused')
  expect(refused.data).toMatchObject({ code: 'fork_failed', reason: expect.stringContaining('network') })
  expect(containers()).toHaveLength(1)
})
