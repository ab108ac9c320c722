import { expect, it } from 'vitest'
import { borrowed } from '../../storage/checkpoint-store.ts'
import { fakeCheckpoint } from '../../storage/fake-checkpoint.ts'
import { WorkspaceHistory } from './workspace-history.ts'

const bytes = (text: string) => Buffer.from(text)

it('follows a file through its renames, page by page', async () => {
  const checkpoint = fakeCheckpoint()
  const entry = async (path: string, text: string) => {
    const { hash } = await checkpoint.addBlob(bytes(text))
    return { path, type: 'file' as const, mode: 0o644, mtimeMs: 1, size: text.length, hash }
  }
  const version = async (id: string, ...changes: [path: string, before: string | null, after: string | null][]) => {
    const stored = []
    for (const [path, before, after] of changes)
      stored.push({
        path,
        before: before === null ? null : await entry(path, before),
        after: after === null ? null : await entry(path, after)
      })
    const set = { id, kind: 'version' as const, at: 1, about: { by: 'person' as const }, changes: stored }
    await checkpoint.commit({ put: [], deleted: [], keep: [set] })
  }
  await version('v0', ['old', null, 'first'])
  for (let at = 1; at <= 60; at++) await version(`v${at}`, ['old', at === 1 ? 'first' : `${at - 1}`, `${at}`])
  await version('moved', ['old', '60', null], ['new', null, '60'])
  await version('again', ['old', null, 'another file'])
  await version('newest', ['new', '60', 'last'], ['other', null, 'x'])
  const history = new WorkspaceHistory({ openSaved: async () => borrowed(checkpoint) })
  const ids = (versions: { changeId: string }[]) => versions.map(({ changeId }) => changeId)
  const first = await history.versions('s', { path: 'new' })
  expect(ids(first.versions).slice(0, 3)).toEqual(['newest', 'moved', 'v60'])
  expect(first.hasMore).toBe(true)
  const rest = await history.versions('s', { path: 'new', before: ids(first.versions).at(-1) ?? '' })
  expect([ids(rest.versions).at(-1), rest.hasMore, first.versions.length + rest.versions.length]).toEqual([
    'v0',
    false,
    63
  ])
})
