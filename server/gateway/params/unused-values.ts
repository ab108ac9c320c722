/** Finds values in the sentence that no parameter got: running without them would do something else. */

import type { StoredTool } from '../../catalog/stored-tools.ts'
import { wordSet } from '../../lib/word-set.ts'
import { STOP_WORDS, WEAK_WORDS } from '../../routing/words/stop-words.ts'
import { type LiteralKind, literalsIn, repositoryOf } from './literals.ts'
import { isSaid } from './resolve-params.ts'

/** In this order they are named. */
const KINDS: LiteralKind[] = ['quoted', 'url', 'email', 'glob', 'path', 'repo', 'date', 'file', 'number', 'id']
const MAX_NAMED = 5
const MAX_CHARS = 60
const MAX_DEPTH = 12

interface Filled {
  request: string
  server: string
  tool: Pick<StoredTool, 'name' | 'description'>
  params: Record<string, unknown>
}

/** Returns a sentence; undefined if every value is used. */
export function unusedValues({ request, server, tool, params }: Filled): string | undefined {
  const leaves = leavesOf(params)
  const own = `${server} ${tool.name} ${tool.description} ${Object.keys(params).join(' ')}`.toLowerCase()
  const literals = literalsIn(request).toSorted((a, b) => KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind))
  const values = literals.flatMap((literal) => {
    const { kind, text } = literal
    // "The s3 buckets" names the tool, not a value.
    if ((kind === 'id' || kind === 'file') && own.includes(text.toLowerCase())) return []
    const { owner, repo } = repositoryOf(literal) ?? {}
    if (owner !== undefined && leaves.includes(owner) && leaves.includes(repo ?? '')) return []
    return leaves.some((leaf) => isSaid(text, leaf)) ? [] : [kind === 'number' ? Number(text) : text]
  })
  const unused = [...new Set([...values, ...wordsUnused(request, leaves, own), ...subjectUnused(request, leaves, own)])]
  if (unused.length === 0) return undefined
  const named = unused.slice(0, MAX_NAMED).map((value) => JSON.stringify(value).slice(0, MAX_CHARS))
  const more = unused.length > MAX_NAMED ? ` and ${unused.length - MAX_NAMED} more` : ''
  return `These values of the request are in none of "params": ${named.join(', ')}${more}.`
}

const NUMBERS = 'zero one two three four five six seven eight nine ten eleven twelve'.split(' ')
/** Names, numbers in words, and times. "One" is an article more often than a number. */
const VALUES_IN_WORDS = new RegExp(
  String.raw`(?<=[\p{L}\p{N},]\s+)\p{Lu}[\p{L}\p{N}'\u2019-]*|\b(?:${NUMBERS.filter((word) => word !== 'one').join('|')}|dozens?|hundreds?|thousands?)\b|` +
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
    const number = NUMBERS.indexOf(word)
    return number < 0 || !leaves.includes(String(number))
  })
}

/** What comes after "for", "about" or "named" is what somebody looks for. */
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
