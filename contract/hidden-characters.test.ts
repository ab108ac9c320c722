import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cpuMs } from '../tests/support/cpu-ms.ts'
import {
  escapeJson,
  hasHidden,
  replaceHidden,
  reveal,
  revealPlainly,
  type TextKind,
  terminalLine,
  terminalText
} from './hidden-characters.ts'

/** The invisible characters, one Unicode property at a time. The code's own pattern is not used here, because it could be wrong. */
const UNSEEN = [
  /\p{Default_Ignorable_Code_Point}/u,
  /\p{Bidi_Control}/u,
  /\p{Cf}/u,
  /\p{Cc}/u,
  /\p{Cs}/u,
  /\p{Co}/u,
  /\p{Zl}/u,
  /\p{Zp}/u,
  /\p{Noncharacter_Code_Point}/u,
  /\p{Variation_Selector}/u,
  /[\u2800\u3164\u115f\u1160\uffa0\u2065\ufff0-\ufff8\u{e0000}-\u{e0fff}]/u
]
const DRAWN = /[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}]/u
const isMarked = (text: string, kind: TextKind) => reveal(text, kind).some(({ hidden }) => hidden !== undefined)
const everyCodePoint = function* () {
  for (let code = 0; code <= 0x10ffff; code++) yield String.fromCodePoint(code)
}
const prose = (text: string) => revealPlainly(text, 'prose')

describe('of all 1,114,112 code points', () => {
  // Checked: with the earlier list, 3,769 characters of Default_Ignorable_Code_Point are not marked.
  it('marks every one that is not seen, in commands and in prose', () => {
    const missed: string[] = []
    for (const character of everyCodePoint()) {
      if (character === '\n' || character === '\t' || !UNSEEN.some((property) => property.test(character))) continue
      if (!isMarked(`a${character}b`, 'strict') || !isMarked(character, 'strict')) missed.push(character)
      if (!isMarked(`a${character}b`, 'prose') && !DRAWN.test(character)) missed.push(character)
    }
    expect(missed.map((character) => character.codePointAt(0)?.toString(16))).toEqual([])
  })

  it('marks also spaces that look like a plain one in commands, and nothing that is seen', () => {
    const wrong: string[] = []
    for (const character of everyCodePoint()) {
      const isSeen = /[\p{L}\p{M}\p{N}\p{P}\p{S}]/u.test(character) && !UNSEEN.some((unseen) => unseen.test(character))
      const isBlank = /[\ufffc\u{13441}\u{13442}\u{16fe4}\u{1d159}]/u.test(character)
      if (isSeen && !isBlank && (isMarked(character, 'strict') || isMarked(character, 'prose'))) wrong.push(character)
      if (/\p{Zs}/u.test(character) && character !== ' ' && !isMarked(`a${character}b`, 'strict')) wrong.push(character)
    }
    expect(wrong.map((character) => character.codePointAt(0)?.toString(16))).toEqual([])
    expect(reveal('Grüße\n\tмир 世界 שלום 👋 é')).toHaveLength(1)
  })
})

// Seen before: 300 spaces before the second path looked like the end of the line.
it('shows a long blank inside a line of a command, but keeps indentation, columns and prose', () => {
  const sly = `rm -rf build${' '.repeat(300)}src`
  expect(revealPlainly(sly)).toBe('rm -rf build⟨300 spaces⟩src')
  expect(terminalLine(sly)).toBe('rm -rf build⟨300 spaces⟩src')
  expect(revealPlainly(`a${' \t'.repeat(10)}b`)).toBe('a⟨20 spaces and tabs⟩b')
  expect(hasHidden(`if (x)\n${' '.repeat(40)}${'\t'.repeat(9)}y = 1${' '.repeat(12)}// why`)).toBe(false)
  for (const kind of ['columns', 'prose'] as const) expect(revealPlainly(sly, kind)).toBe(sly)
})

describe('in prose', () => {
  it.each([
    ['emoji', '👩‍🚀 ❤️ ❤‍🔥 👩🏻‍❤️‍💋‍👨🏻 🏳️‍🌈 🏴‍☠️ 1️⃣ #️⃣ ☺︎ 🇺🇦 🏴󠁧󠁢󠁳󠁣󠁴󠁿'],
    ['Persian, Arabic and Urdu', 'می‌خواهم کتاب‌ها ه‍ه \u0601١٢'],
    ['Indic scripts', 'क्‍ष र‍्य ශ්‍රී ক্‌ষ മല്‍മ'],
    ['Mongolian', 'ᠭᠠᠯᠠᠭ᠎ᠠ ᠳ᠋ᠤ'],
    ['Khmer word breaks', 'ភាសា\u200bខ្មែរ'],
    ['spaces of French and Japanese', 'Quoi\u202f? «\u00a0oui\u00a0» 東京\u3000大阪']
  ])('leaves %s as it is, and shows the parts in a command', (_name, text) => {
    expect(reveal(text, 'prose')).toEqual([{ text }])
    expect(isMarked(text, 'strict')).toBe(true)
  })

  it.each([
    ['a joiner between Latin letters', 'pass\u200dword', 'pass⟨U+200D⟩word'],
    ['a joiner at the edge of a script', 'क\u200d x', 'क⟨U+200D⟩ x'],
    ['a second joiner', 'می\u200c\u200cخ', 'می⟨U+200C ×2⟩خ'],
    ['a joiner after the last picture', '👋\u200dok', '👋⟨U+200D⟩ok'],
    ['more selectors than one', '👋\ufe0f\ufe0f\ufe0e', '👋\ufe0f⟨U+FE0F⟩⟨U+FE0E⟩'],
    ['a selector after a letter or a digit', 'a\ufe0f1\ufe0f', 'a⟨U+FE0F⟩1⟨U+FE0F⟩'],
    ['variation selectors 17 to 256 after an emoji', '😀\u{e0100}\u{e01ef}', '😀⟨U+E0100⟩⟨U+E01EF⟩'],
    ['a sentence in tags behind a flag', '🏴\u{e0068}\u{e0069}\u{e007f}', '🏴⟨U+E0068⟩⟨U+E0069⟩⟨U+E007F⟩'],
    ['reserved ignorable characters', 'a\u2065\u{e0080}\u{e0fff}', 'a⟨U+2065⟩⟨U+E0080⟩⟨U+E0FFF⟩'],
    ['direction', 'a\u202eb\u2066\u200f\u061c', 'a⟨U+202E⟩b⟨U+2066⟩⟨U+200F⟩⟨U+061C⟩'],
    ['blanks', '\u2800\u3164\uffa0\u00ad', '⟨U+2800⟩⟨U+3164⟩⟨U+FFA0⟩⟨U+00AD⟩'],
    ['an endless chain of pictures', '😀\u200d'.repeat(7), `${'😀\u200d'.repeat(5)}😀⟨U+200D⟩😀⟨U+200D⟩`]
  ])('shows %s', (_name, text, shown) => {
    expect(prose(text)).toBe(shown)
  })
})

describe('any text', () => {
  const pieces = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string({
      unit: fc.constantFrom(
        ...'a1#\u200b\u200c\u200d\ufe0f\u20e3👩❤🏻🏴کक\u{e0067}\u{e007f}\u180bᠭ\ud83d\udc69\x1b[]\x07\x9b'
      )
    })
  )

  it('loses nothing, and lets nothing hidden through', () => {
    fc.assert(
      fc.property(pieces, (text) => {
        for (const kind of ['strict', 'prose'] as const)
          expect(
            reveal(text, kind)
              .map((part) => part.text)
              .join('')
          ).toBe(text)
        for (const shown of [revealPlainly(text), terminalText(text)])
          for (const unseen of UNSEEN) expect(shown.replace(/[\n\t]/g, '')).not.toMatch(unseen)
        expect(hasHidden(text)).toBe(isMarked(text, 'strict'))
        expect(terminalLine(text)).not.toContain('\n')
      })
    )
  })

  it('stays the same JSON with all that is hidden as escapes', () => {
    fc.assert(
      fc.property(pieces, (text) => {
        const json = escapeJson(JSON.stringify({ [text]: [text] }))
        expect(JSON.parse(json)).toEqual({ [text]: [text] })
        expect(hasHidden(json)).toBe(false)
      })
    )
  })

  it('is marked in no more places than a page can bear, and a repeated character once', () => {
    expect(reveal(`a${'\u200b'.repeat(100_000)}b`)).toEqual([
      { text: 'a' },
      { text: '\u200b'.repeat(100_000), hidden: 'U+200B ×100000' },
      { text: 'b' }
    ])
    const parts = reveal('a\u200b\u2066\u{e0041}\u{e0041}'.repeat(50_000))
    expect(parts.length).toBeLessThan(300)
    expect(parts.at(-1)?.text.endsWith('a⟨U+200B⟩⟨U+2066⟩⟨U+E0041 ×2⟩')).toBe(true)
    expect(hasHidden(parts.at(-1)?.text ?? '')).toBe(false)
  })

  it.each([
    '\u200b',
    '\u200d',
    '👩\u200d',
    'क\u200d',
    '👩\u200d\ufe0f',
    '1\ufe0f',
    '🏴\u{e0067}\u{e0062}',
    '\ud83d',
    '\x1b]',
    '\x1b[0',
    '\x1b[ ',
    '0',
    ' ',
    'a \t',
    '\x9d',
    '\x1bP\x1b',
    '\x1b[0;'
  ])('takes linear time when it is hostile: %j', async (piece) => {
    const run = (times: number) => {
      const text = `\x1b]\x1b[${piece.repeat(times)}`
      return cpuMs(() => {
        for (const kind of ['strict', 'prose'] as const) reveal(text, kind)
        terminalText(text)
        replaceHidden(text, () => '')
      })
    }
    await run(20_000)
    // Ten times as much would take a hundred times as long if it were quadratic.
    expect(await run(200_000)).toBeLessThan(Math.max(30 * (await run(20_000)), 1500))
  })
})

describe('a terminal', () => {
  it.each([
    ['colours', 'a\x1b[1;31mred\x1b[0m\x9b2Jb', 'aredb'],
    ['title that hides text', 'a\x1b]0;title\x07b\x9d; rm x\x9cc', 'a⟨U+001B⟩]0;title⟨U+0007⟩b⟨U+009D⟩; rm x⟨U+009C⟩c'],
    ['modes and character sets', '\x1b(0a\x1bMb\x1b=c\x1bcd', 'abcd'],
    ['what does not end', 'a\x1b]0;title', 'a⟨U+001B⟩]0;title'],
    ['what forms only afterwards', '\x1b\x1b[m[31mx', '⟨U+001B⟩[31mx'],
    ['a carriage return that overwrites', 'bad\rgood', 'bad⟨U+000D⟩good']
  ])('gets no %s', (_name, text, shown) => {
    expect(terminalText(text)).toBe(shown)
  })

  it('keeps lines, or has one', () => {
    expect(terminalText('a\r\n\tb\n')).toBe('a\n\tb\n')
    expect(terminalLine('a\nb\u2028c\n')).toBe('a⟨U+000A⟩b⟨U+2028⟩c')
  })
})
