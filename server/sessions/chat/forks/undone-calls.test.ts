/** Undoes the changes of one call of an accepted review. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { CommandData } from '../../../../contract/commands.ts'
import { WorkspaceHistory } from '../../files/workspace-history.ts'
import { type FakeSessions, fakeSessions } from '../../sandboxes/fake-sessions.ts'
import type { SessionManager } from '../../sandboxes/session-manager.ts'
import { called, type FakeChat, fakeChat, said } from '../fake-chat.ts'

let sessions: FakeSessions
let manager: SessionManager
let fake: FakeChat

const write = (path: string, content: string, callId: string) =>
  called('write_file', JSON.stringify({ path, content }), callId)
const STEPS = [write('a.txt', 'one', 'c1'), write('a.txt', 'two', 'c2'), write('b.txt', 'new', 'c3'), said('done')]

beforeEach(async () => {
  sessions = await fakeSessions()
  manager = await sessions.start('a')
  fake = await fakeChat({
    model: (_, step) => [STEPS[step] ?? said('ok')],
    options: { mode: 'review' },
    on: { store: sessions.store, sessions: manager }
  })
  await upload('base')
})
afterEach(async () => {
  await fake.close()
  await sessions.close()
})

const upload = (text: string) =>
  manager.run('s1', async (workspace) => {
    const data = Buffer.from(text).toString('base64')
    await workspace.change({ kind: 'write', path: 'a.txt', data, expected: null })
    await workspace.saveFiles()
  })
const files = () => Object.fromEntries([...sessions.engine.containers.values()][0]?.files ?? [])
const history = () => new WorkspaceHistory(manager)

async function open(): Promise<{ reviewId: string; hash: string }> {
  await fake.chat.send('s1', { text: 'go' })
  await fake.until('review:opened')
  const { review } = await fake.chat.transcript('s1')
  return { reviewId: review?.reviewId ?? '', hash: review?.changes.hash ?? '' }
}

async function decide(more: Omit<CommandData<'review:decide'>, 'reviewId' | 'hash'>): Promise<void> {
  await fake.chat.decideReview('s1', { ...(await open()), ...more })
  await fake.until('review:applied')
}

async function undo(callId: string, choices?: CommandData<'files:revert'>['choices']): Promise<void> {
  const changeId = `part:${callId}`
  const { hash } = await history().revertPlan('s1', changeId, 'one')
  await fake.chat.revert('s1', { changeId, scope: 'one', hash, ...(choices && { choices }) })
}

async function storedSets(): Promise<string[]> {
  const saved = await manager.openSaved('s1')
  await saved.close()
  return [...saved.changeSets.keys()].filter((id) => !id.startsWith('person:'))
}

it("undoes one call's files alone", async () => {
  await decide({ accept: 'all' })
  expect(files()).toEqual({ 'a.txt': 'two', 'b.txt': 'new' })
  await undo('c3')
  expect(files()).toEqual({ 'a.txt': 'two' })
  await undo('c2')
  expect(files()).toEqual({ 'a.txt': 'one' })
  const { changeId } = (await history().versions('s1')).versions[0] ?? { changeId: '' }
  const back = await history().revertPlan('s1', changeId, 'one')
  await fake.chat.revert('s1', { changeId, scope: 'one', hash: back.hash })
  expect(files()).toEqual({ 'a.txt': 'two' })
})

it('shows as a conflict what a later call has changed again, and lists parts nowhere as versions', async () => {
  await decide({ accept: 'all' })
  const plan = await history().revertPlan('s1', 'part:c1', 'one')
  expect(plan.files).toMatchObject([{ path: 'a.txt', conflict: { now: { type: 'file' } } }])
  await expect(undo('c1')).rejects.toMatchObject({ code: 'changes_conflict' })
  expect(files()).toMatchObject({ 'a.txt': 'two' })
  await undo('c1', { 'a.txt': 'fork' })
  expect(files()).toMatchObject({ 'a.txt': 'base' })
  const { versions } = await history().versions('s1')
  expect(versions.map(({ about }) => about.by)).toEqual(['revert', 'review', 'person'])
  await expect(history().revertPlan('s1', 'part:c1', 'since')).rejects.toMatchObject({ code: 'unknown_version' })
})

// Checked: if the first part keeps its own base, "base" comes back, which the person had replaced before the review.
it('brings back what the person had in the workspace when they chose the version of the fork', async () => {
  const review = await open()
  await upload('mine')
  const { files: shown } = await history().changes('s1', `review:${review.reviewId}`)
  const seenConflicts = { 'a.txt': shown.find(({ path }) => path === 'a.txt')?.conflict?.seen ?? '' }
  await fake.chat.decideReview('s1', { ...review, accept: 'all', choices: { 'a.txt': 'fork' }, seenConflicts })
  await fake.until('review:applied')
  await undo('c1', { 'a.txt': 'fork' })
  expect(files()).toMatchObject({ 'a.txt': 'mine' })
})

it('has nothing to undo of what was not accepted, or not yet', async () => {
  const review = await open()
  const none = { code: 'unknown_version' }
  await expect(history().revertPlan('s1', 'part:c3', 'one')).rejects.toMatchObject(none)
  await fake.chat.decideReview('s1', { ...review, accept: ['b.txt'] })
  await fake.until('review:applied')
  for (const callId of ['c1', 'c2'])
    await expect(history().revertPlan('s1', `part:${callId}`, 'one')).rejects.toMatchObject(none)
  await undo('c3')
  expect(files()).toEqual({ 'a.txt': 'base' })
})

it('leaves no part of a review that was rejected', async () => {
  await decide({ accept: 'none' })
  expect(await storedSets()).toEqual([])
})
