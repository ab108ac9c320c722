/** From text to terms: Unicode words, identifiers taken apart, stop words dropped, stems. */
import { stem } from './stem.ts'
import { STOP_WORDS } from './stop-words.ts'

const MAX_TEXT = 8000
const MAX_WORD = 40
const WORD = /[\p{L}\p{M}]+|\p{N}+/gu
const CJK = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}]/u
const CAMEL = /(?<=[\p{Ll}])(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})/u

const stems = new Map<string, string>()
const MAX_STEMS = 20_000

function cachedStem(word: string): string {
  const known = stems.get(word)
  if (known !== undefined) return known
  const result = stem(word)
  // Cleared, not evicted one by one: it only saves work.
  if (stems.size >= MAX_STEMS) stems.clear()
  stems.set(word, result)
  return result
}

/** Letters without their accents, so that "météo" and "meteo" are one word. */
export function plain(text: string): string {
  return text
    .slice(0, MAX_TEXT)
    .normalize('NFKD')
    .replace(/\p{Mn}/gu, '')
}

/** Scripts without spaces between words: overlapping pairs of characters stand in for words. */
function pairs(run: string): string[] {
  const characters = Array.from(run)
  if (characters.length < 3) return [run]
  return characters.slice(1).map((character, at) => `${characters[at]}${character}`)
}

/** `parts`: of an identifier nothing but its parts. */
export type TextKind = 'prose' | 'name' | 'parts'

/**
 * Lower-case words. Of an identifier (`getUserInfo`) come the parts; of a brand such as "GitHub", with one inner
 * capital, only the whole when in prose, for its parts mean something else.
 */
export function words(text: string, kind: TextKind): string[] {
  const found: string[] = []
  for (const [run] of plain(text).matchAll(WORD)) {
    if (CJK.test(run)) {
      found.push(...pairs(run.slice(0, 400)))
      continue
    }
    const parts = run.split(CAMEL)
    if (parts.length === 1) found.push(run.toLowerCase().slice(0, MAX_WORD))
    else {
      if (kind !== 'prose' || parts.length > 2)
        found.push(...parts.map((part) => part.toLowerCase().slice(0, MAX_WORD)))
      if (kind === 'name' || (kind === 'prose' && parts.length === 2)) found.push(run.toLowerCase().slice(0, MAX_WORD))
    }
  }
  return found
}

/** Stems of the words that carry meaning, in order, with repetitions. */
export function terms(text: string, kind: TextKind, limit: number): string[] {
  const found: string[] = []
  for (const word of words(text, kind)) {
    if (STOP_WORDS.has(word)) continue
    found.push(cachedStem(word))
    if (found.length >= limit) break
  }
  return found
}

export function termOf(word: string): string {
  return cachedStem(word)
}

/** Neighbouring terms as one feature each. */
export function pairsOf(found: readonly string[]): Set<string> {
  const pairs = new Set<string>()
  for (let at = 0; at + 1 < found.length; at += 1) pairs.add(`${found[at]} ${found[at + 1]}`)
  return pairs
}
