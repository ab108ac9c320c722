import { expect, it } from 'vitest'
import { AnsiLines } from './ansi-lines.ts'
import { findText } from './find-text.ts'
import { rowPieces } from './row-pieces.ts'

function linesOf(text: string): AnsiLines {
  const lines = new AnsiLines()
  lines.push(text)
  return lines
}
const pieces = (text: string) => rowPieces(linesOf(text).rows[0] ?? [])

// Checked: if the address may end before a foreign letter, there is a link to "https://my.b".
it('makes links of addresses in the text', () => {
  const links = (text: string) => pieces(text).flatMap(({ href, text }) => (href === undefined ? [] : [[text, href]]))
  expect(links('see https://a.example/x?y=1, or (http://b.example).')).toEqual([
    ['https://a.example/x?y=1', 'https://a.example/x?y=1'],
    ['http://b.example', 'http://b.example']
  ])
  expect(links('https://my.bänk.example javascript:alert(1) file:///x ftp://x')).toEqual([])
  expect(links('https://my.bank\u202e.example')).toEqual([])
  expect(links('\x1b[31mhttps://a.\x1b[32mexample')).toEqual([
    ['https://a.', 'https://a.example'],
    ['example', 'https://a.example']
  ])
})

it('says where a link leads if its text does not', () => {
  const targets = (text: string) => pieces(text).map(({ target }) => target)
  expect(targets('\x1b]8;;https://evil.example/x\x07my bank\x1b]8;;\x07')).toEqual(['evil.example'])
  expect(targets('\x1b]8;;https://a.example/\x07https://a.example/\x1b]8;;\x07')).toEqual([undefined])
  expect(targets('https://my.bank@evil.example')).toEqual(['evil.example'])
})

it('names hidden characters, and marks what was found', () => {
  expect(rowPieces(linesOf('ab\u202ecd').rows[0] ?? [], [{ from: 3, to: 4, isCurrent: true }])).toMatchObject([
    { text: 'ab' },
    { hidden: 'U+202E' },
    { text: 'c', hit: 'current' },
    { text: 'd' }
  ])
})

it('finds text in all rows, in any case, within a limit', () => {
  const lines = linesOf('One one\n\x1b[31mo\x1b[32mne\nnothing')
  expect(findText(lines, 'ONE')).toEqual({
    found: [
      { row: 0, from: 0, to: 3 },
      { row: 0, from: 4, to: 7 },
      { row: 1, from: 0, to: 3 }
    ],
    isCut: false
  })
  expect(findText(lines, '').found).toEqual([])
  expect(findText(linesOf('xx\n'.repeat(9000)), 'x')).toMatchObject({ isCut: true })
})
