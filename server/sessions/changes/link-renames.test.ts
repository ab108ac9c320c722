import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { discard, temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import type { StoredChange } from '../../storage/checkpoint-store.ts'
import { fakeCheckpoint } from '../../storage/fake-checkpoint.ts'
import { WorkspaceFiles } from '../sandboxes/workspace-files.ts'
import { filesOf, hashOf, partOf } from './changed-files.ts'
import { insideSandbox, treeOf } from './inside-sandbox.fixture.ts'
import { linkRenames } from './link-renames.ts'
import { acceptedPart, planChanges } from './plan-changes.ts'
import { planRevert } from './revert-plan.ts'

const lines = (name: string, from = 0, to = 40) =>
  Array.from({ length: to - from }, (_, at) => `${name} has a line ${at + from}\n`).join('')

async function world(files: [path: string, before: string | null, after: string | null][]) {
  const checkpoint = fakeCheckpoint()
  const side = async (path: string, text: string | null) => {
    if (text === null) return null
    const { hash, size } = await checkpoint.addBlob(Buffer.from(text))
    return { path, type: 'file' as const, mode: 0o644, mtimeMs: 1, size, hash }
  }
  const changes: StoredChange[] = []
  for (const [path, before, after] of files)
    changes.push({ path, before: await side(path, before), after: await side(path, after) })
  const put = changes.flatMap(({ after }) => after ?? [])
  const keep = [{ id: 'v', kind: 'version' as const, at: 1, about: { by: 'person' as const }, changes }]
  await checkpoint.commit({ put, deleted: [], keep })
  return { checkpoint, changes }
}
const renames = (changes: readonly StoredChange[]) =>
  filesOf(changes).map(({ path, from, after }) => (from ? `${from} → ${path}` : `${after ? '+' : '-'} ${path}`))

it('shows a file that was renamed and changed as one, by what they share, and prefers the same content', async () => {
  const { checkpoint, changes } = await world([
    ['src/a.ts', lines('a'), null],
    ['src/b.ts', lines('b'), null],
    ['moved', lines('same'), null],
    ['gone.ts', lines('gone'), null],
    ['lib/one.ts', null, `${lines('a', 0, 36)}and more\n`],
    ['lib/two.ts', null, `${lines('b', 5)}and more\n`],
    ['moved-to', null, lines('same')],
    ['like-moved', null, `${lines('same')}x\n`],
    ['other.ts', null, lines('other')]
  ])
  expect(renames(await linkRenames(checkpoint, changes))).toEqual([
    '- gone.ts',
    'src/a.ts → lib/one.ts',
    'src/b.ts → lib/two.ts',
    '+ like-moved',
    'moved → moved-to',
    '+ other.ts'
  ])
})

it('gives each deleted file to the most similar one, and to the one with its name if two are alike', async () => {
  const { checkpoint, changes } = await world([
    ['a/x.ts', lines('x'), null],
    ['b/first.ts', null, `${lines('x')}1\n`],
    ['b/x.ts', null, `${lines('x')}2\n`],
    ['y.ts', lines('y'), null],
    ['y1.ts', null, lines('y', 0, 30)],
    ['y2.ts', null, lines('y', 0, 38)]
  ])
  expect(renames(await linkRenames(checkpoint, changes))).toEqual([
    '+ b/first.ts',
    'a/x.ts → b/x.ts',
    '+ y1.ts',
    'y.ts → y2.ts'
  ])
})

it('leaves files alone that share little, are huge, or are too many', async () => {
  const little = await world([
    ['a', lines('a'), null],
    ['b', null, lines('a', 0, 20) + lines('other', 0, 30)]
  ])
  expect(await linkRenames(little.checkpoint, little.changes)).toBe(little.changes)
  const huge = await world([
    ['a', lines('a', 0, 20_000), null],
    ['b', null, lines('a', 0, 20_001)]
  ])
  expect(await linkRenames(huge.checkpoint, huge.changes)).toBe(huge.changes)
  const short = (more: string) => Array.from({ length: 60_000 }, (_, at) => at.toString(36)).join('\n') + more
  const dense = await world([
    ['a', short(''), null],
    ['b', null, short('x')]
  ])
  expect(await linkRenames(dense.checkpoint, dense.changes)).toBe(dense.changes)
  const many = Array.from({ length: 101 }, (_, at): [string, string | null, string | null][] => [
    [`a${at}`, lines(`${at}`), null],
    [`b${at}`, null, `${lines(`${at}`)}x\n`]
  ])
  const crowd = await world(many.flat())
  expect(await linkRenames(crowd.checkpoint, crowd.changes)).toBe(crowd.changes)
  const fits = await world(many.slice(1).flat())
  expect(filesOf(await linkRenames(fits.checkpoint, fits.changes)).every(({ from }) => from)).toBe(true)
})

it('accepts, refuses and reverts both paths together, and a decision names the link', async () => {
  const { checkpoint, changes } = await world([
    ['old', lines('a'), null],
    ['new', null, `${lines('a')}x\n`],
    ['also', null, 'x']
  ])
  const linked = await linkRenames(checkpoint, changes)
  expect(hashOf(linked)).not.toBe(hashOf(changes))
  const paths = (part: readonly StoredChange[]) => part.map(({ path }) => path)
  expect(paths(partOf(linked, ['new']))).toEqual(['old', 'new'])
  const before = new Map(linked.flatMap((each) => (each.before ? [[each.path, each.before]] : [])))
  expect(paths(acceptedPart(before, linked, { allExcept: ['new'] }))).toEqual(['also'])
  // The version that is made of it keeps the link, and so does its opposite.
  expect(renames(planChanges(before, linked).changes)).toEqual(['+ also', 'old → new'])
  await checkpoint.commit({
    ...{ put: [], deleted: [], drop: ['v'] },
    keep: [{ id: 'w', kind: 'version', at: 2, about: { by: 'person' }, changes: linked }]
  })
  const { files, changes: back } = planRevert(checkpoint, 'w', 'one')
  expect(files).toMatchObject([{ path: 'also' }, { path: 'old', from: 'new' }])
  expect(renames(back)).toEqual(['- also', 'new → old'])
  // Both sides of the rename were changed since.
  const there = linked.flatMap(({ after }) => (after ? [{ ...after, hash: 'f'.repeat(64) }] : []))
  await checkpoint.addBlob(Buffer.from('mine'))
  const now = new Map(there.map((entry) => [entry.path, entry]))
  expect(planRevert({ entries: now, changeSets: checkpoint.changeSets }, 'w', 'one').files).toMatchObject([
    { path: 'also', conflict: {} },
    { path: 'old', from: 'new', conflict: { at: 'new' } }
  ])
  // Alone, a link means nothing.
  expect(renames(linked.filter(({ path }) => path !== 'old'))).toEqual(['+ also', '+ new'])
})

it('links what one call has renamed and changed in the workspace, and a revert brings the same files back', async () => {
  const folder = temporaryFolder()
  const { root, connection } = insideSandbox(folder, 'w')
  const checkpoint = fakeCheckpoint()
  const files = new WorkspaceFiles(connection, checkpoint)
  writeFileSync(join(root, 'old.txt'), lines('a'))
  await files.sync({ everything: true })
  const before = treeOf(root)
  mkdirSync(join(root, 'new'))
  renameSync(join(root, 'old.txt'), join(root, 'new/name.txt'))
  writeFileSync(join(root, 'new/name.txt'), `${lines('a')}more\n`)
  await files.sync({ version: { id: 'call:c', about: { by: 'call', callId: 'c' } } })
  const { changes = [] } = files.version('call:c') ?? {}
  expect(renames(changes)).toEqual(['old.txt → new/name.txt'])
  const { changes: back } = planRevert(checkpoint, 'call:c', 'one')
  const reverted = await files.apply({ changes: back, version: { id: 'revert:1', about: { by: 'revert' } } })
  expect(renames(reverted?.changes ?? [])).toEqual(['new/name.txt → old.txt'])
  expect(treeOf(root)).toEqual(before)
  await connection.close()
  discard(folder)
})
