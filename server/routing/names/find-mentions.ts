/** Finds the tools and servers that a request names exactly, however the parts of the name are joined. */
import { STOP_WORDS, WEAK_WORDS } from '../words/stop-words.ts'
import { isGeneralWord } from '../words/synonyms.ts'
import { plain, termOf } from '../words/words.ts'

const TOKEN = /[\p{L}\p{N}]+/gu
const MAX_NAME_TOKENS = 8
const MAX_TOKENS = 600

interface Token {
  key: string
  start: number
  end: number
}

export interface Mention {
  key: string
  tokens: number
  start: number
  end: number
  /** Has a separator or an inner capital, so it can only be a name. */
  spelt: boolean
  /** The words around it show that it is a name: "use X", "X tool", "X/…", "with X: …". */
  introduced: boolean
  /** Follows "on" or "from", which says little about a word of general English. */
  placed: boolean
  /** A word of general English; it counts only if introduced. */
  common: boolean
}

/** Keeps letters and digits only, so that get-sum, get_sum, getSum and "get sum" are equal. */
export function nameKey(name: string): string {
  return (plain(name.slice(0, 200)).match(TOKEN) ?? []).join('').toLowerCase()
}

const QUOTE = `["'\`“‘]?`
const ARTICLE = '(?:the\\s+|my\\s+|our\\s+)?'
const BEFORE = new RegExp(
  `(?:^|[^\\p{L}\\p{N}])(?:us(?:e|ing)|call(?:ing)?|run(?:ning)?|invok(?:e|ing)|execut(?:e|ing))\\s+(${ARTICLE})${QUOTE}$`,
  'iu'
)
const PLACED = new RegExp(
  `(?:^|[^\\p{L}\\p{N}])(?:via|through|with|on|in|from|at|ask|by|to|into)\\s+${ARTICLE}${QUOTE}$`,
  'iu'
)
const AFTER = /^["'`”’]?\s+(?:mcp|tool|server|function|command|plugin|connector|integration)\b/iu
const DENIED = new RegExp(
  `(?:\\bnot|n['’]t|\\bwithout|\\bexcept|\\binstead of|\\brather than|\\bavoid|\\bnever)\\s+(?:us(?:e|ing)\\s+|call(?:ing)?\\s+|via\\s+|from\\s+)?(?:the\\s+)?${QUOTE}$`,
  'iu'
)

/** getUserInfo, listIssues, HttpGetAll; but GitHub and YouTube are everyday words. */
const IDENTIFIER = /^\p{Ll}+\p{Lu}|\p{Ll}\p{Lu}.*\p{Ll}\p{Lu}/u

function isCommon(key: string, tokens: number): boolean {
  if (tokens > 1) return false
  return key.length < 3 || STOP_WORDS.has(key) || WEAK_WORDS.has(key) || isGeneralWord(termOf(key)) || /^\d+$/.test(key)
}

/** "to-do", "add-on", "sign-up" are words, "get-sum" is a name. */
function isHyphenatedEnglish(raw: string): boolean {
  return raw
    .toLowerCase()
    .split('-')
    .some((part) => STOP_WORDS.has(part))
}

function describe(text: string, key: string, first: Token, last: Token, tokens: number): Mention | undefined {
  const raw = text.slice(first.start, last.end)
  const before = text.slice(Math.max(0, first.start - 40), first.start)
  const after = text.slice(last.end, last.end + 24)
  if (DENIED.test(before)) return undefined
  const common = isCommon(key, tokens)
  const placed = PLACED.test(before)
  const told = BEFORE.exec(before)
  const colon = /^\s*:(?!\/\/)/.test(after) && (before.trim() === '' || placed)
  // "use search" names a tool; "use the search" may not.
  const used = told !== null && (!common || told[1] === '' || AFTER.test(after))
  const path = /^(?:\/|::?)[\p{L}\p{N}]/u.test(after) && /(?:^|\s|["'`(])$/.test(before)
  return {
    key,
    tokens,
    start: first.start,
    end: last.end,
    spelt: tokens === 1 ? IDENTIFIER.test(raw) : !/[\s'’]/.test(raw) && !isHyphenatedEnglish(raw),
    introduced: colon || used || path || (!common && AFTER.test(after)) || text.trim() === raw,
    placed: placed && !common,
    common
  }
}

/** Finds every part of the request for which `isName` is true; if parts overlap, the longest. */
export function findMentions(request: string, isName: (key: string) => boolean): Mention[] {
  const text = plain(request)
  const tokens: Token[] = []
  for (const match of text.matchAll(TOKEN)) {
    tokens.push({ key: match[0].toLowerCase(), start: match.index, end: match.index + match[0].length })
    if (tokens.length >= MAX_TOKENS) break
  }
  const found: Mention[] = []
  for (let at = 0; at < tokens.length; ) {
    const mention = longestAt(text, tokens, at, isName)
    if (mention) found.push(mention)
    at += mention?.tokens ?? 1
  }
  return found
}

function longestAt(text: string, tokens: Token[], at: number, isName: (key: string) => boolean): Mention | undefined {
  const first = tokens[at]
  if (!first) return undefined
  let key = ''
  let longest: Mention | undefined
  for (let count = 1; count <= MAX_NAME_TOKENS; count += 1) {
    const last = tokens[at + count - 1]
    if (!last) break
    key += last.key
    if (isName(key)) longest = describe(text, key, first, last, count) ?? longest
  }
  return longest
}
