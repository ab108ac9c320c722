import { expect, it } from 'vitest'
import type { ChangedFile, FileSide } from '../../../contract/effects/change-set.ts'
import { insideWords, sideWords } from './change-words.ts'

const file = (mode: number): FileSide => ({ type: 'file', mode, size: 1, hash: 'h'.repeat(64) })
const dir = (mode: number): FileSide => ({ type: 'dir', mode })
const words = (before: FileSide | undefined, after: FileSide | undefined) =>
  sideWords({ path: 'x', ...(before && { before }), ...(after && { after }) } as ChangedFile)

// Checked: without the permissions of what is new, a folder that everyone may change is "a folder", and a setuid file "executable".
it.each<[FileSide | undefined, FileSide | undefined, string]>([
  [undefined, dir(0o777), 'a folder, permissions 0777'],
  [undefined, dir(0o1777), 'a folder, permissions 1777'],
  [undefined, dir(0o755), 'a folder'],
  [dir(0o755), dir(0o700), 'a folder, permissions 0755 → 0700'],
  [undefined, file(0o666), 'permissions 0666'],
  [undefined, file(0o4755), 'executable, permissions 4755'],
  [undefined, file(0o755), 'executable'],
  [undefined, file(0o644), ''],
  [file(0o644), file(0o755), 'made executable'],
  [file(0o644), file(0o4777), 'made executable, permissions 0644 → 4777'],
  [file(0o4755), file(0o644), 'no longer executable, permissions 4755 → 0644'],
  [file(0o644), file(0o600), 'permissions 0644 → 0600'],
  [file(0o600), undefined, ''],
  [dir(0o755), file(0o600), 'permissions 0600']
])('says what a person must know besides the content: %j, then %j', (before, after, said) => {
  expect(words(before, after)).toBe(said)
})

it('names what goes with a folder that a file replaces', () => {
  const inside = (paths: string[], insideTotal: number) =>
    insideWords({ path: 'd', conflict: { inside: paths, insideTotal, seen: 'x' } })
  expect(inside(['d/a', 'd/b'], 5)).toBe(
    'The folder there has something new in it, which goes with it: d/a, d/b and 3 more.'
  )
  expect(insideWords({ path: 'd' })).toBe('')
})
