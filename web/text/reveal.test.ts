import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { reveal, revealPlainly } from './reveal.ts'

describe('reveal', () => {
  it.each([
    ['a bidi override', '\u202e', 'U+202E'],
    ['an isolate', '\u2066', 'U+2066'],
    ['a zero-width space', '\u200b', 'U+200B'],
    ['a joiner', '\u200d', 'U+200D'],
    ['a no-break space', '\u00a0', 'U+00A0'],
    ['a control', '\u0007', 'U+0007'],
    ['a carriage return', '\r', 'U+000D'],
    ['an escape', '\u001b', 'U+001B'],
    ['a tag that smuggles ASCII', '\u{e0041}', 'U+E0041'],
    ['a variation selector', '\u{e0100}', 'U+E0100'],
    ['a filler', '\u3164', 'U+3164'],
    ['a line separator', '\u2028', 'U+2028'],
    ['a soft hyphen', '\u00ad', 'U+00AD'],
    ['a lone surrogate', '\ud800', 'U+D800']
  ])('shows %s', (_name, character, hidden) => {
    expect(reveal(`a${character}b`)).toEqual([{ text: 'a' }, { text: character, hidden }, { text: 'b' }])
  })

  it('leaves visible text of any script, line breaks and tabs alone', () => {
    const text = 'Grüße\n\tмир 世界 שלום 👋 é'
    expect(reveal(text)).toEqual([{ text }])
  })

  it('leaves in prose what emoji and scripts need, and nothing that reorders', () => {
    expect(reveal('👩‍🚀 می‌خواهم ❤️', 'prose')).toHaveLength(1)
    expect(revealPlainly('x\u202ey')).toBe('x⟨U+202E⟩y')
    expect(reveal('x\u202ey', 'prose')).toHaveLength(3)
  })

  it('names a character that comes many times in a row once, and marks no more places than a page can bear', () => {
    expect(reveal(`a${'\u200b'.repeat(100_000)}b`)).toEqual([
      { text: 'a' },
      { text: '\u200b'.repeat(100_000), hidden: 'U+200B ×100000' },
      { text: 'b' }
    ])
    const parts = reveal('a\u200b\u2066\u{e0041}\u{e0041}'.repeat(50_000))
    expect(parts.length).toBeLessThan(300)
    expect(parts.at(-1)?.text.endsWith('a⟨U+200B⟩⟨U+2066⟩⟨U+E0041 ×2⟩')).toBe(true)
    expect(parts.at(-1)?.text).not.toMatch(/\p{Cf}/u)
  })

  it('loses nothing, and lets nothing hidden through', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const parts = reveal(text)
        expect(parts.map((part) => part.text).join('')).toBe(text)
        for (const part of parts)
          if (!part.hidden) expect(part.text).not.toMatch(/(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
      })
    )
  })
})
