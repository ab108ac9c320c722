import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cpuMs } from '../../../tests/support/cpu-ms.ts'
import { parseHostileJson } from './hostile-json.ts'

const parse = (text: string) => parseHostileJson(Buffer.from(text))

describe('parseHostileJson', () => {
  it('reads what JSON.parse reads', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 8 }), (value) => {
        const text = JSON.stringify(value)
        fc.pre(!text.includes('"__proto__"')) // dropped on purpose
        expect(JSON.stringify(parse(text))).toBe(JSON.stringify(JSON.parse(text)))
      })
    )
  })

  it('counts no brackets inside strings, however these are escaped', () => {
    const tricky = fc.string({ unit: fc.constantFrom('\\', '"', '[', '{', ']', ',', 'a', 'é', '\n'), maxLength: 120 })
    fc.assert(
      fc.property(fc.array(tricky), (value) => {
        expect(parse(JSON.stringify(value))).toEqual(value)
      })
    )
    expect(parse(JSON.stringify('['.repeat(100_000)))).toHaveLength(100_000)
  })

  it('knows where a string ends, near and far', () => {
    const piece = fc.string({ unit: fc.constantFrom('\\', '"', 'a'), maxLength: 80 })
    fc.assert(
      fc.property(piece, piece, (before, after) => {
        const inside = `${'a'.repeat(40)}${before}${'['.repeat(65)}${after}`
        expect(parse(JSON.stringify([inside]))).toEqual([inside])
        expect(() => parse(`[${JSON.stringify(before + after)},${'['.repeat(64)}`)).toThrow(/deeper/)
      })
    )
  })

  // Checked: without the limit, the error is another one and comes only after everything was read.
  it.each(['[', '{"a":'])('refuses a million levels of %s at once', async (open) => {
    const bytes = Buffer.from(open.repeat(1_000_000))
    expect(await cpuMs(() => expect(() => parseHostileJson(bytes)).toThrow(/deeper/))).toBeLessThan(500)
  })

  // Checked: without the limit, there is no error.
  it('refuses millions of values before building them', () => {
    expect(() => parse(`[${'{},'.repeat(2_000_000)}{}]`)).toThrow(/more than/)
    expect(parse(`[${'0,'.repeat(900_000)}0]`)).toHaveLength(900_001)
  })

  // Checked: if keys are kept as they are, the key is there.
  it('drops __proto__, also behind escapes and in depth', () => {
    for (const key of ['__proto__', '\\u005f_proto__', '__pr\\u006fto__', '_\\u005Fproto__']) {
      const value = parse(`{"a":{"${key}":{"polluted":true},"b":1}}`) as { a: Record<string, unknown> }
      expect(Object.keys(value.a)).toEqual(['b'])
    }
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined()
  })

  it('takes the last of two equal keys, as JSON.parse does', () => {
    expect(parse('{"id":"a","id":"b"}')).toEqual({ id: 'b' })
  })

  it('throws a SyntaxError on anything broken', () => {
    for (const text of ['', '{', '"', '"\\', '{"a":1}}', '\u0000', '[1,]'])
      expect(() => parse(text)).toThrow(SyntaxError)
  })
})
