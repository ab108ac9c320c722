/** Finds values in the sentence that no parameter got: running without them would do something else. */

import type { StoredTool } from '../../catalog/stored-tools.ts'
import { wordSet } from '../../lib/word-set.ts'
import { wordsOf } from '../../policy/plain-reader.ts'
import type { LiteralKind } from '../../routing/words/literals.ts'
import { STOP_WORDS, WEAK_WORDS } from '../../routing/words/stop-words.ts'
import { propertiesOf } from './check-params.ts'
import { stem } from './fit-literals.ts'
import { repositoryOf } from './repository-of.ts'
import { isSaid } from './resolve-params.ts'
import { blank, tokensOf, wholeLiterals, withoutUsed } from './whole-values.ts'

/** They are named in this order. */
const KINDS: LiteralKind[] = ['quoted', 'url', 'email', 'glob', 'path', 'repo', 'date', 'file', 'number', 'id']
const MAX_NAMED = 5
const MAX_CHARS = 60
const MAX_DEPTH = 12

interface Filled {
  request: string
  server: string
  tool: Pick<StoredTool, 'name' | 'description' | 'inputSchema'>
  params: Record<string, unknown>
}

/** Returns a sentence; undefined if every value is used. With `strict`, every word that the tool does not explain is a value. */
export function unusedValues({ request, server, tool, params }: Filled, strict = false): string | undefined {
  const leaves = leavesOf(params)
  const own = `${server} ${tool.name} ${tool.description} ${Object.keys(params).join(' ')}`.toLowerCase()
  const isUsed = (text: string) => leaves.some((leaf) => isSaid(text, leaf))
  let rest = withoutUsed(request, leaves)
  const literals = wholeLiterals(rest).toSorted((a, b) => KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind))
  const values = literals.flatMap((literal) => {
    const { kind, text } = literal
    rest = blank(rest, literal)
    // "The s3 buckets" names the tool, not a value.
    if ((kind === 'id' || kind === 'file') && own.includes(text.toLowerCase())) return []
    const { owner, repo } = repositoryOf(literal) ?? {}
    if (owner !== undefined && leaves.includes(owner) && leaves.includes(repo ?? '')) return []
    return isUsed(text) ? [] : [kind === 'number' ? Number(text) : text]
  })
  const { words, strays } = tokensOf(rest)
  const isPieced = (token: string) =>
    JOINED.test(token) && token.split(/[/x×,;:]/).every((part) => leaves.includes(part))
  const unknown = strays.filter(
    (token) => !/^[+=]$/.test(token) && !own.includes(token.toLowerCase()) && !isUsed(token) && !isPieced(token)
  )
  const unused = [
    ...new Set([
      ...values,
      ...unknown,
      ...wordsUnused(request, leaves, own),
      ...subjectUnused(request, leaves, own),
      ...(strict ? unexplained(words, server, tool) : [])
    ])
  ]
  if (unused.length === 0) return undefined
  const named = unused.slice(0, MAX_NAMED).map((value) => JSON.stringify(value).slice(0, MAX_CHARS))
  const more = unused.length > MAX_NAMED ? ` and ${unused.length - MAX_NAMED} more` : ''
  return `These values of the request are in none of "params": ${named.join(', ')}${more}.`
}

/** The parts of "3x4" and "owner/name" may be values. */
const JOINED = /^[\w.-]+(?:[/x×,;:][\w.-]+)+$/

/** The words that are neither function words nor the tool's own. */
function unexplained(words: string[], server: string, { name, inputSchema }: Filled['tool']): string[] {
  const own = new Set(wordsOf(`${server} ${name} ${Object.keys(propertiesOf(inputSchema)).join(' ')}`).map(stem))
  return words.filter(
    (word) => !STOP_WORDS.has(word.toLowerCase()) && !wordsOf(word).every((part) => own.has(stem(part)))
  )
}

const NUMBERS = 'zero one two three four five six seven eight nine ten eleven twelve'.split(' ')
/** Names, numbers in words, and times. "One" is an article more often than a number. */
const VALUES_IN_WORDS = new RegExp(
  String.raw`(?<=[\p{L}\p{N},]\s+)\p{Lu}[\p{L}\p{N}'\u2019-]*|\b(?:${NUMBERS.filter((word) => word !== 'one').join('|')}|dozens?|hundreds?|thousands?|millions?|billions?|trillions?|half|minus|negative|percent|squared|cubed)\b|` +
    String.raw`\b(?:tomorrow|yesterday|tonight|later|hourly|daily|weekly|monthly|yearly|every\s+(?:second|minute|hour|day|night|morning|week|month|year)|(?:next|last|this)\s+(?:hour|day|night|morning|noon|afternoon|evening|week|weekend|month|year)s?|noon|midnight|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|april|june|july|august|september|october|november|december|(?:older|newer|earlier|longer)\s+than)\b`,
  'gu'
)
/** Capitalised, and no values. */
const NO_NAMES = wordSet(
  'i i’m i’d i’ll i’ve im api apis id ids url urls json xml csv html http pdf ok tv english mcp please thanks'
)

/** A server, tool or description may say the word itself: "Kubernetes", "daily". */
function wordsUnused(request: string, leaves: string[], own: string): string[] {
  const free = request.replace(/"[^"]*"|“[^”]*”|(?<!\w)'[^']*'(?!\w)|(?<![^\s"”'])[^\s/\\@\d]*[/\\@\d]\S*/g, ' , ')
  const given = leaves.join('\n').toLowerCase()
  const found = [...new Set(free.match(VALUES_IN_WORDS) ?? [])]
  return found.filter((value) => {
    const word = value.toLowerCase().replace(/'/g, '’')
    const bare = word.replace(/’s$/, '')
    if (NO_NAMES.has(word) || own.includes(bare) || given.includes(bare)) return false
    if (/^prs?$/.test(bare) && own.includes('pull')) return false
    const number = NUMBERS.indexOf(word)
    return number < 0 || !leaves.includes(String(number))
  })
}

/** The words after "for", "about" or "named" say what the request looks for. */
function subjectUnused(request: string, leaves: string[], own: string): string[] {
  const free = request.replace(/"[^"]*"|“[^”]*”|(?<!\w)'[^']*'(?!\w)|(?<!\S)[^\s/\\@\d]*[/\\@\d]\S*/g, ' , ')
  const given = leaves.join('\n').toLowerCase()
  const said = [...free.matchAll(/\b(?:for|about|named|called|matching|containing)\s+([\p{L}\p{M}' -]+)/giu)]
  const words = said.flatMap(
    ([, words = '']) =>
      (words.split(/\s(?:in|of|on|from|with|by|at|to|and|or|as)\s/i)[0] ?? '').match(/[\p{L}\p{M}]+/gu) ?? []
  )
  return words.filter((word) => {
    const lower = word.toLowerCase()
    if (
      lower.length < 3 ||
      NUMBERS.includes(lower) ||
      STOP_WORDS.has(lower) ||
      WEAK_WORDS.has(lower) ||
      /^(?:named|called|matching|containing)$/.test(lower) ||
      given.includes(lower)
    )
      return false
    return !own.includes(lower.replace(/(?:ies|es|s|y)$/, ''))
  })
}

function leavesOf(value: unknown, depth = 0): string[] {
  if (typeof value !== 'object' || value === null) return value === undefined ? [] : [String(value)]
  return depth > MAX_DEPTH ? [] : Object.values(value).flatMap((item) => leavesOf(item, depth + 1))
}
