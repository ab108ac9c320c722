/** Turns text into terms: Unicode words, identifiers split into parts, stop words removed, Porter stems. */
import { stemmer } from 'stemmer'
import { normalForm } from '../../lib/normal-form.ts'
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
  const result = /^[a-z]+$/.test(word) ? stemmer(word) : word
  // Cleared as a whole, not evicted one by one: it is only a cache.
  if (stems.size >= MAX_STEMS) stems.clear()
  stems.set(word, result)
  return result
}

/** Removes accents, so that "météo" and "meteo" are the same word. */
export function plain(text: string): string {
  return normalForm(text.slice(0, MAX_TEXT), 'NFKD').replace(/\p{Mn}/gu, '')
}

/** For scripts without spaces: overlapping pairs of characters stand in for words. */
function pairs(run: string): string[] {
  const characters = Array.from(run)
  if (characters.length < 3) return [run]
  return characters.slice(1).map((character, at) => `${characters[at]}${character}`)
}

/** `parts`: an identifier yields only its parts. */
export type TextKind = 'prose' | 'name' | 'parts'

/**
 * Splits text into lower-case words. An identifier (`getUserInfo`) yields its parts. A brand with one inner capital, such as
 * "GitHub", yields only the whole word in prose, because its parts mean something else.
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

/** Stems of the meaningful words, in order, with repetitions. */
export function terms(text: string, kind: TextKind, limit: number): string[] {
  const found: string[] = []
  for (const word of words(text, kind)) {
    if (STOP_WORDS.has(word)) continue
    found.push(cachedStem(word))
    if (found.length >= limit) break
  }
  return found
}

/** Terms of neighbouring words, without those that a stop word separates: the "knowledge graph" in "search the knowledge graph". */
export function compoundsOf(text: string, limit: number): [first: string, second: string][] {
  const found = words(text, 'prose').slice(0, limit)
  return found.slice(1).flatMap((word, at): [string, string][] => {
    const before = found[at] ?? ''
    return STOP_WORDS.has(word) || STOP_WORDS.has(before) ? [] : [[cachedStem(before), cachedStem(word)]]
  })
}

export function termOf(word: string): string {
  return cachedStem(word)
}

/** Joins neighbouring terms into one feature each. */
export function pairsOf(found: readonly string[]): Set<string> {
  const pairs = new Set<string>()
  for (let at = 0; at + 1 < found.length; at += 1) pairs.add(`${found[at]} ${found[at + 1]}`)
  return pairs
}
