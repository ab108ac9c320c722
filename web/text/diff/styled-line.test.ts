import { expect, it } from 'vitest'
import { highlightedLines } from '../markdown/highlight.ts'
import { styledLine } from './styled-line.ts'

it('splits a line at its colours and marks', () => {
  const colours = [
    { length: 3, className: 'keyword' },
    { length: 3, className: '' }
  ]
  expect(styledLine('let xy', colours, [{ from: 4, to: 5 }])).toMatchObject([
    { text: 'let', className: 'keyword', isMarked: false },
    { text: ' ', className: '', isMarked: false },
    { text: 'x', className: '', isMarked: true },
    { text: 'y', className: '', isMarked: false }
  ])
})

// Checked: if each colour is looked at alone, a blank of 40 spaces that two colours share is not named.
it('names what is hidden across the borders of colours', () => {
  const text = `a${' '.repeat(40)}rm -rf /`
  const colours = [
    { length: 20, className: 'x' },
    { length: 29, className: 'y' }
  ]
  expect(styledLine(text, colours).map(({ hidden }) => hidden)).toEqual([undefined, '40 spaces', undefined])
})

it('gives each line of code its colours, with the text as it is', () => {
  const code = 'const a = `<b>\n&amp;` // é\n'
  const lines = highlightedLines(code, 'typescript') ?? []
  const text = code.split('\n')
  expect(lines.map((runs) => runs.reduce((sum, { length }) => sum + length, 0))).toEqual(
    text.map(({ length }) => length)
  )
  expect(lines[0]?.[0]).toEqual({ length: 5, className: 'hljs-keyword' })
  expect(lines[1]?.[0]?.className).toBe('hljs-string')
  expect(highlightedLines('x', 'no-language')).toBeNull()
})
