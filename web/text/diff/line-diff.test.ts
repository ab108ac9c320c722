import { expect, it } from 'vitest'
import { lineDiff, newFileRows, unnumbered } from './line-diff.ts'

it('shows removed and added lines, with line numbers', async () => {
  expect(await lineDiff('a\nb\nc\n', 'a\nB\nc\nd\n')).toEqual([
    { kind: 'same', text: 'a', before: 1, after: 1 },
    { kind: 'removed', text: 'b', before: 2 },
    { kind: 'added', text: 'B', after: 2 },
    { kind: 'same', text: 'c', before: 3, after: 3 },
    { kind: 'added', text: 'd', after: 4 }
  ])
})

it('folds unchanged lines, and keeps them so that they can be shown', async () => {
  const old = Array.from({ length: 20 }, (_, at) => `line ${at + 1}`)
  const rows = await lineDiff(old.join('\n'), old.with(9, 'changed').join('\n'))
  expect(rows.map(({ kind, text }) => (kind === 'gap' ? text : kind))).toEqual([
    '6 unchanged lines',
    ...['same', 'same', 'same', 'removed', 'added', 'same', 'same', 'same'],
    '7 unchanged lines'
  ])
  expect(rows[0]?.folded?.map(({ text }) => text)).toEqual(old.slice(0, 6))
  expect(rows.at(-1)?.folded?.at(-1)).toMatchObject({ text: 'line 20', before: 20, after: 20 })
})

it('marks the words that changed in a line, and nothing in lines with little in common', async () => {
  const [gone, come] = await lineDiff('const limit = 10 // rows\n', 'const limit = 2000 // rows\n')
  const marked = (row: typeof gone) => row?.marks?.map(({ from, to }) => row.text.slice(from, to))
  expect([marked(gone), marked(come)]).toEqual([['10'], ['2000']])
  expect((await lineDiff('one thing\n', 'quite another\n')).some(({ marks }) => marks)).toBe(false)
})

it('is empty when nothing changes, and takes a new file whole', async () => {
  expect(await lineDiff('same\n', 'same\n')).toEqual([])
  expect(newFileRows('a\n\nb')).toHaveLength(3)
  expect(newFileRows('')).toEqual([])
  expect(unnumbered(newFileRows('a'))).toEqual([{ kind: 'added', text: 'a' }])
})

it('answers in good time where all is different', async () => {
  const before = Array.from({ length: 20_000 }, (_, line) => `old ${line * 7}`).join('\n')
  const after = Array.from({ length: 20_000 }, (_, line) => `new ${line * 3}`).join('\n')
  const started = performance.now()
  expect((await lineDiff(before, after)).length).toBeGreaterThan(39_000)
  // A fraction of a second; without a bound, minutes.
  expect(performance.now() - started).toBeLessThan(20_000)
})
