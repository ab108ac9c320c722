import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { boundContent } from './bound-content.ts'

const bytes = (value: unknown) => Buffer.byteLength(JSON.stringify(value))

describe('content that is kept', () => {
  it('is unchanged if it fits', () => {
    const content = [{ type: 'text', text: 'hi' }, null, 7, { type: 'image', data: 'xx' }]
    expect(boundContent(content)).toEqual(content)
  })

  it.each(['a', '漢', '😀', '\u0000', '"'])('fits in an event, of whatever characters (%j)', (letter) => {
    const [part] = boundContent([{ type: 'text', text: `start ${letter.repeat(9_000_000)} end` }])
    expect(bytes([part])).toBeLessThan(9_000_000)
    const { text } = part as { text: string }
    expect(text.isWellFormed()).toBe(true)
    expect(text).toMatch(/^start [\s\S]*\[… \d+ characters left out …\][\s\S]* end$/)
  })

  it('fits for any list of parts', () => {
    const part = fc.oneof(
      fc.record({ type: fc.constant('text'), text: fc.nat(4_000_000).map((length) => 'é'.repeat(length)) }),
      fc.record({ type: fc.constant('image'), data: fc.nat(9_000_000).map((length) => 'x'.repeat(length)) }),
      fc.constant(null)
    )
    fc.assert(
      fc.property(fc.array(part, { maxLength: 6 }), fc.integer({ min: 1, max: 40 }), (parts, times) => {
        const content = Array.from({ length: times }, () => parts).flat()
        const kept = boundContent(content)
        expect(bytes(kept)).toBeLessThan(10_000_000)
        expect(kept.length).toBeLessThanOrEqual(201)
      }),
      { numRuns: 6 }
    )
  })
})
