import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AnsiLines } from './ansi-lines.ts'

function linesOf(...chunks: string[]): AnsiLines {
  const lines = new AnsiLines()
  for (const chunk of chunks) lines.push(chunk)
  return lines
}
const plain = ({ rows }: AnsiLines) => rows.map((row) => row.map(({ text }) => text).join(''))

describe('AnsiLines', () => {
  it('colours, and ends what it began', () => {
    expect(linesOf('a\x1b[1;31mred\x1b[0mb').rows).toEqual([
      [
        { text: 'a', className: '' },
        { text: 'red', className: 'ansi-red font-bold' },
        { text: 'b', className: '' }
      ]
    ])
  })

  it('drops every other sequence: titles, links, cursor moves', () => {
    expect(plain(linesOf('a\x1b]0;title\x07b\x1b[2Jc\x1b]8;;http://x\x1b\\d\x1bMe'))).toEqual(['abcde'])
    expect(plain(linesOf('\x1b[38;5;200mx\x1b[48;2;1;2;3my'))).toEqual(['xy'])
  })

  it('lets a carriage return begin the line anew, as progress bars do', () => {
    expect(plain(linesOf('10%\r20%\r', '30%\ndone\r\n'))).toEqual(['30%', 'done', ''])
    expect(plain(linesOf('kept\r'))).toEqual(['kept'])
  })

  it('does not care where a stream was cut', () => {
    const text = 'one\x1b[32mtwo\x1b[0m\r\nthree\rfour\x1b]0;t\x07\nfive'
    fc.assert(
      fc.property(fc.array(fc.nat(text.length), { maxLength: 6 }), (cuts) => {
        const places = [0, ...cuts.sort((a, b) => a - b), text.length]
        const chunks = places.slice(1).map((end, at) => text.slice(places[at], end))
        expect(plain(linesOf(...chunks))).toEqual(['onetwo', 'four', 'five'])
      })
    )
  })

  it('is bounded, and counts what it let go', () => {
    const lines = new AnsiLines()
    for (let chunk = 0; chunk < 100; chunk++) lines.push('x\n'.repeat(1000))
    expect(lines.rows.length).toBeLessThanOrEqual(22_000)
    expect(lines.rows.length + lines.droppedRows).toBe(100_001)
  })

  it('breaks a line without end', () => {
    expect(plain(linesOf('y'.repeat(2500))).map(({ length }) => length)).toEqual([1000, 1000, 500])
  })
})
