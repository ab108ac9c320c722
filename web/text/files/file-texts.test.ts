import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseNotebook } from './notebook.ts'
import { pdfPages } from './pdf-pages.ts'
import { parseValues, separatorOf } from './separated-values.ts'
import { decodeText, encodeText, textFileWords, withLineEnds, withPlainEnds } from './text-file.ts'

describe('a text file', () => {
  it.each([
    ['UTF-8', [0x61, 0xc3, 0xa4]],
    ['UTF-8 with BOM', [0xef, 0xbb, 0xbf, 0x61, 0xc3, 0xa4]],
    ['UTF-16 LE', [0xff, 0xfe, 0x61, 0, 0xe4, 0]],
    ['UTF-16 BE', [0xfe, 0xff, 0, 0x61, 0, 0xe4]],
    ['Windows-1252', [0x61, 0xe4]]
  ])('keeps its encoding: %s', (encoding, bytes) => {
    const file = decodeText(Uint8Array.from(bytes))
    expect(file).toEqual({ text: 'aä', encoding })
    expect(file && [...encodeText(file.text, file.encoding)]).toEqual(bytes)
  })

  it('is binary if it has a zero, and refuses what its encoding lacks', () => {
    expect(decodeText(Uint8Array.of(0x61, 0))).toBeNull()
    // A GIF and compressed data, shown as Windows-1252 before.
    expect(decodeText(Uint8Array.of(0x47, 0x49, 0x46, 0x38, 0x39, 0x61, 0x01, 0xff))).toBeNull()
    expect(decodeText(Uint8Array.of(0x78, 0x9c, 0xed, 0x90, 0x41))).toBeNull()
    expect(() => encodeText('a→', 'Windows-1252')).toThrow('which has no “→”')
  })

  it('keeps every line end that was not edited, and writes new lines as most are', () => {
    expect(withLineEnds('a\nnew\nb\nc\n', 'a\r\nb\nc\r\n')).toBe('a\r\nnew\r\nb\nc\r\n')
    expect(withLineEnds('a\nb', 'a\r')).toBe('a\rb')
    expect(textFileWords({ text: 'a\r\nb\n', encoding: 'UTF-8' })).toBe('mixed line ends')
    const line = fc.constantFrom('a', 'b', '', '\n', '\r\n', '\r')
    fc.assert(
      fc.property(fc.array(line), fc.array(line), (first, second) => {
        const [original, edited] = [first.join(''), withPlainEnds(second.join(''))]
        expect(withLineEnds(withPlainEnds(original), original)).toBe(original)
        expect(withPlainEnds(withLineEnds(edited, original))).toBe(edited)
      })
    )
  })
})

describe('a table', () => {
  it('has quoted separators, line ends and quotes in its cells', () => {
    const text = 'name;note\r\n"a;b";"says ""hi""\nthere"\r\n\r\nlast;'
    expect(separatorOf(text)).toBe(';')
    expect(parseValues(text, ';')).toEqual({
      rows: [
        ['name', 'note'],
        ['a;b', 'says "hi"\nthere'],
        ['last', '']
      ],
      isCut: false
    })
  })

  it('ends for any text, and is cut if it is long, wide or broken', () => {
    expect(parseValues('a,b\n'.repeat(600), ',')).toMatchObject({ rows: { length: 500 }, isCut: true })
    expect(parseValues(','.repeat(60), ',').rows[0]).toHaveLength(50)
    expect(parseValues('a,b\n"never', ',')).toEqual({ rows: [['a', 'b']], isCut: true })
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('"', ',', '\n', '\r', 'x') }), (text) => {
        parseValues(text, ',')
      })
    )
  })
})

it('a notebook gives its texts and pictures, but no HTML and no script', () => {
  const output = (data: object) => ({ output_type: 'display_data', data })
  const cells = [
    { cell_type: 'markdown', source: ['# Title\n', 'text'] },
    {
      cell_type: 'code',
      execution_count: 3,
      source: 'print(1)',
      outputs: [
        { output_type: 'stream', text: ['1\n'] },
        output({ 'text/html': '<script>alert(1)</script>', 'text/plain': 'plain' }),
        output({ 'image/png': 'iVBO\nRw==' }),
        output({ 'image/png': '"><script>' }),
        output({ 'application/javascript': 'alert(1)' }),
        { output_type: 'error', traceback: ['\u001b[31mNameError', 'x'] }
      ]
    },
    null
  ]
  expect(parseNotebook(JSON.stringify({ cells, metadata: {} }))?.cells).toEqual([
    { kind: 'markdown', source: '# Title\ntext', count: null, outputs: [] },
    {
      kind: 'code',
      source: 'print(1)',
      count: 3,
      outputs: [
        { kind: 'text', text: '1\n' },
        { kind: 'text', text: 'plain' },
        { kind: 'image', type: 'image/png', base64: 'iVBORw==' },
        { kind: 'note', text: "This output can't be shown here (image/png)." },
        { kind: 'note', text: "This output can't be shown here (application/javascript)." },
        { kind: 'error', text: 'NameError\nx' }
      ]
    },
    { kind: 'text', source: '', count: null, outputs: [] }
  ])
  expect(parseNotebook('[1')).toBeNull()
  expect(parseNotebook('{"worksheets":[]}')).toBeNull()
})

it('a PDF says how many pages it has, plain and compressed', async () => {
  const bytes = async (...parts: BlobPart[]) => new Uint8Array(await new Blob(parts).arrayBuffer())
  const pages = '<< /Type /Pages /Kids [3 0 R] /Count 12 >>'
  expect(await pdfPages(await bytes('%PDF-1.4\n', pages))).toBe(12)
  const packed = new Response(new Blob([`1 0 2 50 ${pages}`]).stream().pipeThrough(new CompressionStream('deflate')))
  const [head, end] = ['%PDF-1.7\n<< /Type /ObjStm /N 2 >>\nstream\n', '\nendstream']
  expect(await pdfPages(await bytes(head, await packed.arrayBuffer(), end))).toBe(12)
  expect(await pdfPages(await bytes('no PDF'))).toBeNull()
})
