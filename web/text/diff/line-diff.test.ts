import { expect, it } from 'vitest'
import { lineDiff, newFileRows } from './line-diff.ts'

it('shows what goes and what comes, with line numbers', async () => {
  expect(await lineDiff('a\nb\nc\n', 'a\nB\nc\nd\n')).toEqual([
    { kind: 'gap', text: 'Line 1' },
    { kind: 'same', text: 'a', before: 1, after: 1 },
    { kind: 'removed', text: 'b', before: 2 },
    { kind: 'added', text: 'B', after: 2 },
    { kind: 'same', text: 'c', before: 3, after: 3 },
    { kind: 'added', text: 'd', after: 4 }
  ])
})

it('is empty when nothing changes, and takes a new file whole', async () => {
  expect(await lineDiff('same\n', 'same\n')).toEqual([])
  expect(newFileRows('a\n\nb')).toHaveLength(3)
  expect(newFileRows('')).toEqual([])
})

it('answers in good time where all is different', async () => {
  const before = Array.from({ length: 20_000 }, (_, line) => `old ${line * 7}`).join('\n')
  const after = Array.from({ length: 20_000 }, (_, line) => `new ${line * 3}`).join('\n')
  const started = performance.now()
  expect((await lineDiff(before, after)).length).toBeGreaterThan(39_000)
  // A fraction of a second; without a bound, minutes.
  expect(performance.now() - started).toBeLessThan(20_000)
})
