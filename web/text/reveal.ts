/**
 * Makes what a reader cannot see visible. Text from models, tools and files may hide or reorder characters so that a person
 * approves something else than what runs.
 */
export interface TextPart {
  text: string
  /** The code point, when the character would not be seen. */
  hidden?: string
}

/** Controls, formatting, odd spaces and fillers; a line break and a tab are what they look like. */
// biome-ignore lint/suspicious/noMisleadingCharacterClass: each is meant alone
const HIDDEN =
  /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}\u00a0\u034f\u1680\u2000-\u200a\u202f\u205f\u3000\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\ufe00-\ufe0f\u{e0100}-\u{e01ef}]/gu

/** In prose, what many languages and emoji need stays: joiners, direction marks, spaces, variation selectors. */
// biome-ignore lint/suspicious/noMisleadingCharacterClass: likewise
const NEEDED_IN_PROSE = /[\u200c-\u200f\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000\ufe00-\ufe0f\u180b-\u180f]/u

export function reveal(text: string, where: 'strict' | 'prose' = 'strict'): TextPart[] {
  const parts: TextPart[] = []
  let from = 0
  for (const match of text.matchAll(HIDDEN)) {
    if (where === 'prose' && NEEDED_IN_PROSE.test(match[0])) continue
    if (match.index > from) parts.push({ text: text.slice(from, match.index) })
    parts.push({ text: match[0], hidden: codePointName(match[0]) })
    from = match.index + match[0].length
  }
  if (from < text.length) parts.push({ text: text.slice(from) })
  return parts
}

export function codePointName(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`
}

/** For places that take plain text only: titles, labels, file names in a download. */
export function revealPlainly(text: string): string {
  return reveal(text)
    .map((part) => (part.hidden ? `⟨${part.hidden}⟩` : part.text))
    .join('')
}
