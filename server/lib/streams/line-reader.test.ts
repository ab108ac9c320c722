import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cpuMs } from '../../../tests/support/cpu-ms.ts'
import { LineReader, type OversizeLine } from './line-reader.ts'

function collect(maxBytes: number) {
  const lines: string[] = []
  const oversize: OversizeLine[] = []
  const reader = new LineReader(maxBytes, {
    line: (bytes) => lines.push(bytes.toString('utf8')),
    oversize: (line) => oversize.push(line)
  })
  return { reader, lines, oversize }
}

function pushInPieces(reader: LineReader, whole: Buffer, sizes: number[]) {
  let from = 0
  for (let i = 0; from < whole.length; i++) {
    const size = sizes.length === 0 ? whole.length : (sizes[i % sizes.length] ?? 1)
    reader.push(whole.subarray(from, from + size))
    from += size
  }
}

describe('LineReader', () => {
  it('finds the same lines however the bytes are cut, in the middle of a character too', () => {
    const text = fc.string({ unit: 'binary', maxLength: 60 }).map((s) => s.replaceAll('\n', ' '))
    fc.assert(
      fc.property(fc.array(text), fc.array(fc.integer({ min: 1, max: 9 })), (wanted, sizes) => {
        const { reader, lines, oversize } = collect(300)
        pushInPieces(reader, Buffer.from(wanted.map((s) => `${s}\n`).join('')), sizes)
        expect(lines).toEqual(wanted)
        expect(oversize).toEqual([])
      })
    )
  })

  // Checked: without the limit, the property test fails at once.
  it('drops exactly the lines over the limit and keeps both ends of them', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 5000 }), { maxLength: 12 }),
        fc.array(fc.integer({ min: 1, max: 700 })),
        (lengths, sizes) => {
          const wanted = lengths.map((n, i) => String.fromCharCode(97 + i).repeat(n))
          const { reader, lines, oversize } = collect(2500)
          pushInPieces(reader, Buffer.from(wanted.map((s) => `${s}\n`).join('')), sizes)
          expect(lines).toEqual(wanted.filter((s) => s.length <= 2500))
          const over = wanted.filter((s) => s.length > 2500)
          expect(oversize.map((line) => line.bytes)).toEqual(over.map((s) => s.length))
          expect(oversize.map((line) => line.head.toString())).toEqual(over.map((s) => s.slice(0, 1024)))
          expect(oversize.map((line) => line.tail.toString())).toEqual(over.map((s) => s.slice(-1024)))
        }
      )
    )
  })

  it('takes a line of exactly the limit and refuses one byte more', () => {
    for (const size of [1, 7, 100]) {
      const { reader, lines, oversize } = collect(64)
      pushInPieces(reader, Buffer.from(`${'a'.repeat(64)}\n${'b'.repeat(65)}\nc\n`), [size])
      expect(lines).toEqual(['a'.repeat(64), 'c'])
      expect(oversize.map((line) => line.bytes)).toEqual([65])
    }
  })

  it('reads a line of 8 MB that comes in 100-byte pieces in linear time', async () => {
    const { reader, lines } = collect(8 * 1024 * 1024)
    const piece = Buffer.alloc(100, 'x')
    const spent = await cpuMs(() => {
      for (let i = 0; i < 80_000; i++) reader.push(piece)
      reader.push(Buffer.from('\n'))
    })
    expect(spent).toBeLessThan(2000)
    expect(lines[0]).toHaveLength(8_000_000)
  })
})
