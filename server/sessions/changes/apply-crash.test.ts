import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { silentLogger } from '../../lib/logger.ts'
import type { Checkpoint, StoredChangeSet } from '../../storage/checkpoint-store.ts'
import { openCheckpointStore } from '../../storage/checkpoints/checkpoint-files.ts'
import { type AppliedChanges, WorkspaceFiles } from '../sandboxes/workspace-files.ts'
import { insideSandbox, treeOf } from './inside-sandbox.fixture.ts'

let folder: string
let epoch: number
beforeEach(() => {
  folder = temporaryFolder()
  epoch = 0
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** The next owner: a new server inside on the same folder, and the checkpoint as last committed. */
async function takeOver(): Promise<{ checkpoint: Checkpoint; files: WorkspaceFiles; root: string }> {
  const dir = join(folder, 'checkpoints')
  const store = openCheckpointStore({ dir, maxSessionBytes: 2 ** 24, logger: silentLogger })
  const checkpoint = await store.open('s', ++epoch)
  const { root, connection } = insideSandbox(folder, 'workspace')
  const files = new WorkspaceFiles(connection, checkpoint)
  await files.sync({ everything: true })
  return { checkpoint, files, root }
}

/** An open change set: `a` is changed, `b` deleted, `d/c` created. */
async function openSet({ checkpoint, files, root }: Awaited<ReturnType<typeof takeOver>>): Promise<AppliedChanges> {
  writeFileSync(join(root, 'a'), 'old')
  writeFileSync(join(root, 'b'), 'b')
  await files.sync()
  const entry = (path: string) => checkpoint.entries.get(path) ?? null
  const added = await checkpoint.addBlob(Buffer.from('fork'))
  const file = (path: string) => ({ path, type: 'file', mode: 0o755, mtimeMs: 5, ...added }) as const
  const changes: StoredChangeSet['changes'] = [
    { path: 'a', before: entry('a'), after: file('a') },
    { path: 'b', before: entry('b'), after: null },
    { path: 'd', before: null, after: { path: 'd', type: 'dir', mode: 0o555, mtimeMs: 5 } },
    { path: 'd/c', before: null, after: file('d/c') }
  ]
  const open: StoredChangeSet = { id: 'review:1', kind: 'open', at: 1, about: { by: 'review' }, changes }
  await checkpoint.commit({ put: [], deleted: [], keep: [open] })
  return {
    changes,
    version: { id: 'applied:1', about: { by: 'review', reviewId: '1' } },
    beside: () => ({ drop: ['review:1'] })
  }
}

const summary = ({ changeSets }: Checkpoint) => [...changeSets.keys()].filter((id) => !id.startsWith('background:'))

it.each(['before the container is written', 'between container and commit', 'after the commit'])(
  'changes are applied exactly once after a crash %s',
  async (when) => {
    const first = await takeOver()
    const input = await openSet(first)
    const crash = () => Promise.reject(new Error('killed'))
    const { commit } = first.checkpoint
    if (when === 'between container and commit') first.checkpoint.commit = crash
    if (when === 'before the container is written') {
      const changes = () => {
        throw new Error('killed')
      }
      await expect(first.files.apply({ ...input, changes })).rejects.toThrow('killed')
    } else if (when === 'after the commit') await first.files.apply(input)
    else await expect(first.files.apply(input)).rejects.toThrow('killed')
    first.checkpoint.commit = commit

    const second = await takeOver()
    const version = await second.files.apply(input)
    expect(version?.changes.map(({ path }) => path).toSorted()).toEqual(['a', 'b', 'd', 'd/c'])
    const again = await second.files.apply(input)
    expect(again?.id).toBe(version?.id)
    expect(summary(second.checkpoint)).toEqual(['applied:1'])
    expect(Object.keys(treeOf(second.root)).toSorted()).toEqual(['a', 'd', 'd/c'])
    expect(treeOf(second.root)).toMatchObject({ a: expect.stringContaining('755 4 '), d: 'dir 555' })
    await first.checkpoint.close()
    await second.checkpoint.close()
  }
)

// Checked: if a conflict counts as no conflict, "person" is overwritten.
it('a conflict changes nothing, and either choice keeps both versions', async () => {
  const session = await takeOver()
  const input = await openSet(session)
  writeFileSync(join(session.root, 'a'), 'person')
  await expect(session.files.apply(input)).rejects.toMatchObject({ code: 'changes_conflict' })
  expect(Object.keys(treeOf(session.root)).toSorted()).toEqual(['a', 'b'])
  expect(session.checkpoint.changeSets.has('review:1')).toBe(true)
  const version = await session.files.apply({ ...input, resolution: { choices: { a: 'fork' } } })
  const hashes = version?.changes.flatMap(({ before }) => (before?.type === 'file' ? [before.hash] : [])) ?? []
  const contents = await Promise.all(hashes.map(async (hash) => textOf(session.checkpoint, hash)))
  expect(contents.toSorted()).toEqual(['b', 'person'])
  await session.checkpoint.close()
})

async function textOf(checkpoint: Checkpoint, hash: string): Promise<string> {
  let text = ''
  for await (const chunk of checkpoint.read(hash, 1024)) text += Buffer.from(chunk).toString()
  return text
}
