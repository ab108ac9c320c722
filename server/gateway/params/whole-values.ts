/**
 * Decides where a value of a sentence begins and ends. Invariant: a value is never a part of a longer token; a token is what stands
 * between spaces, without the punctuation around it.
 */
import { type Literal, literalsIn } from '../../routing/words/literals.ts'

const OPENS = '(['
const CLOSES = ')].,;:!?…'
/** "1280x720" has two numbers. */
const SIZE_AFTER = /^[x×]\d{1,20}(?!\d)/
const SIZE_BEFORE = /(?<!\d)\d{1,20}[x×]$/
const MAX_SIZE = 24
/** "a=1,b=2" has two values. */
const NEXT_NAME = /^[,;][\w.-]{1,64}[=:]/
const MAX_NAMED = 70
const MAX_DIGITS = 15

/** Whether only punctuation is between the text at this place and the nearest spaces. */
export function isWhole(sentence: string, start: number, end: number): boolean {
  return startsWhole(sentence, start) && endsWhole(sentence, end)
}

export function startsWhole(sentence: string, start: number): boolean {
  let from = start
  while (from > 0 && OPENS.includes(sentence[from - 1] ?? ' ')) from -= 1
  return isSpace(sentence[from - 1])
}

export function endsWhole(sentence: string, end: number): boolean {
  let to = end
  while (to < sentence.length && CLOSES.includes(sentence[to] ?? ' ')) to += 1
  return isSpace(sentence[to])
}

function isSpace(character: string | undefined): boolean {
  return character === undefined || /\s/.test(character)
}

/** The values of the sentence that are whole tokens. */
export function wholeLiterals(sentence: string): Literal[] {
  return literalsIn(sentence).filter((literal) => isWholeLiteral(sentence, literal))
}

function isWholeLiteral(sentence: string, { kind, text, start, end }: Literal): boolean {
  if (kind !== 'number') return isWhole(sentence, start, end)
  if (numberOf(text) === undefined) return false
  const at = start + sentence.slice(start, end).indexOf(text)
  const after = SIZE_AFTER.exec(sentence.slice(at + text.length, at + text.length + MAX_SIZE))?.[0] ?? ''
  const before = SIZE_BEFORE.exec(sentence.slice(Math.max(0, at - MAX_SIZE), at))?.[0] ?? ''
  // "#42" is number 42.
  const mark = sentence[at - 1] === '#' ? 1 : 0
  return isWhole(sentence, at - before.length - mark, at + text.length + after.length)
}

/** The number that the text is; undefined if it has another form, or more digits than a number keeps. */
export function numberOf(text: string): number | undefined {
  if (!/^-?(?:0|[1-9]\d*)(?:\.\d+)?$/.test(text)) return undefined
  const number = Number(text)
  const isExact = text.includes('.') ? text.replace(/\D/g, '').length <= MAX_DIGITS : Number.isSafeInteger(number)
  return isExact ? number : undefined
}

/**
 * The sentence with the first place of each value blank, names and quotation marks included: what is left has no parameter. Blanks
 * are \0, so that positions stay.
 */
export function withoutUsed(sentence: string, values: string[]): string {
  let rest = sentence
  for (const value of values.toSorted((a, b) => b.length - a.length)) {
    for (let at = value === '' ? -1 : rest.indexOf(value); at >= 0; at = rest.indexOf(value, at + 1)) {
      const place = placeOf(rest, at, at + value.length)
      if (!place) continue
      rest = blank(rest, place)
      break
    }
  }
  return rest
}

function placeOf(sentence: string, at: number, to: number): { start: number; end: number } | undefined {
  const isQuoted = /["'“`«]/.test(sentence[at - 1] ?? '') && /["'”`»]/.test(sentence[to] ?? '')
  const end = isQuoted ? to + 1 : to
  const from = isQuoted ? at - 1 : at
  const before = sentence.slice(Math.max(0, from - MAX_NAMED), from)
  const start = from - (/(?:(?<![\w.-])[\w.-]{1,64}[=:]|#)$/.exec(before)?.[0].length ?? 0)
  const starts = startsWhole(sentence, start) || /[,;]/.test(sentence[start - 1] ?? '')
  const ends = endsWhole(sentence, end) || NEXT_NAME.test(sentence.slice(end, end + MAX_NAMED))
  return starts && ends ? { start, end } : undefined
}

export function blank(sentence: string, { start, end }: { start: number; end: number }): string {
  return sentence.slice(0, start) + '\0'.repeat(end - start) + sentence.slice(end)
}

/** Letters, also joined: "don't", "drag-and-drop", "e.g". */
const PLAIN_WORD = /^(?:\p{L}[\p{L}\p{M}]*(?:['’-][\p{L}\p{M}]+)*['’]?|(?:\p{L}\.)+\p{L})$/u
/** Says nothing: a dash, quotation marks, an emoji. */
const SAYS_NOTHING = /^(?:[\-–—"'“”‘’\&]+|\p{RGI_Emoji}+)?$/v

interface Tokens {
  words: string[]
  /** Tokens that are neither words nor punctuation: "½", "C:\a", "5€". */
  strays: string[]
}

/** The tokens of a sentence in which the values that were used are blank. */
export function tokensOf(sentence: string): Tokens {
  const words: string[] = []
  const strays: string[] = []
  for (const { index, 0: token } of sentence.matchAll(/[^\s\0]+/g)) {
    const bare = trim(token)
    const isSign = /^[-–—]+$/.test(bare) && /^\s+[\d\0]/.test(sentence.slice(index + token.length))
    if (PLAIN_WORD.test(bare)) words.push(bare)
    else if (isSign || !SAYS_NOTHING.test(bare)) strays.push(bare)
  }
  return { words, strays }
}

function trim(token: string): string {
  let from = 0
  let to = token.length
  while (from < to && OPENS.includes(token[from] ?? ' ')) from += 1
  while (to > from && CLOSES.includes(token[to - 1] ?? ' ')) to -= 1
  return token.slice(from, to)
}
