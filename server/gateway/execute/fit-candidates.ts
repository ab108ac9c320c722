/**
 * Weighs the router's matches by how well the values of the sentence fit them: a tool that has a place for every value and misses
 * none is more likely than one that can't use them. `bench/sentences/fit.ts` shows what this gains.
 */

import type { StoredTool } from '../../catalog/stored-tools.ts'
import { wordSet } from '../../lib/word-set.ts'
import { EFFECT_WORDS, WRITE_ORDERS } from '../../policy/effect-words.ts'
import { meansEffect, wordsOf } from '../../policy/plain-reader.ts'
import type { RouteMatch } from '../../routing/port.ts'
import { literalsIn } from '../../routing/words/literals.ts'
import { STOP_WORDS } from '../../routing/words/stop-words.ts'
import { isPaging } from '../../tools/parameter-text.ts'
import type { GatewayServices } from '../gateway-services.ts'
import { checkParams, propertiesOf } from '../params/check-params.ts'
import { missingDefaults } from '../params/default-values.ts'
import { fillParams } from '../params/fill-params.ts'
import { stem } from '../params/fit-literals.ts'
import { unusedValues } from '../params/unused-values.ts'
import { withoutValues } from './doubtful-sentence.ts'

/** How much less likely a tool is if it misses a required parameter, or leaves a value of the sentence unused. */
const MISSING = 0.4
const UNUSED = 0.15
/** Or if another match is named after the word before a value ("file /etc/hosts"), or speaks of a word that this one doesn't. */
const OTHER_NOUN = 0.4
const OTHER_WORD = 0.7
/** Or if it changes something, and the sentence has no word for a change. */
const NO_ORDER = 0.2
/** Or if it is about folders, and the only path is a file's. */
const OTHER_FORM = 0.05
const POLITE = wordSet('please kindly can could would will you now just then')
const MAKES = wordSet('make makes making put run start begin')
const FOLDERS = wordSet('directory directories folder folders dir')
/** The chance that a tool outside the matches would fit. Fitted, like the others, on the requests in `bench/sentences`. */
const OTHERS = 0.1

/** The matches with their confidences given the values, best first. Without values, no confidence grows. */
export function fitCandidates(
  { index }: Pick<GatewayServices, 'index'>,
  request: string,
  given: Record<string, unknown>,
  matches: RouteMatch[]
): RouteMatch[] {
  const known = matches.flatMap((match) => {
    const tool = index.tool(match.server, match.tool)
    return tool ? [{ match, tool, words: toolWords(match.server, tool) }] : []
  })
  const nouns = nounsOf(request)
  const isFile = namesFile(request)
  const content = [
    ...new Set(
      wordsOf(withoutValues(request))
        .filter((word) => !STOP_WORDS.has(word))
        .map(stem)
    )
  ]
  const replaced = replacements(known)
  const weighed = known.map(({ match, tool, words }) => {
    const { server } = match
    const { params } = fillParams({ ...tool, server }, given, request)
    const base = replaced.get(match) ?? match.confidence
    let weight = base
    const whole = { ...params, ...missingDefaults(tool.inputSchema, params) }
    if (checkParams(tool.inputSchema, whole).length > 0) weight *= MISSING
    if (unusedValues({ request, server, tool, params }) !== undefined) weight *= UNUSED
    const lacks = (word: string, of: 'name' | 'all') =>
      !words[of].has(word) && known.some((other) => other.words[of].has(word))
    if (changes(tool) && !ordersChange(request, tool)) weight *= NO_ORDER
    if (isFile && wordsOf(tool.name).some((word) => FOLDERS.has(word))) weight *= OTHER_FORM
    for (const noun of nouns) if (lacks(noun, 'name')) weight *= OTHER_NOUN
    for (const word of content) if (lacks(word, 'all')) weight *= OTHER_WORD
    return { match, base, weight, hasValues: Object.keys(params).length > 0 }
  })
  const rest = Math.max(0, 1 - matches.reduce((sum, { confidence }) => sum + confidence, 0)) * OTHERS
  const all = weighed.reduce((sum, { weight }) => sum + weight, rest)
  if (all === 0) return matches
  return weighed
    .toSorted((a, b) => b.weight - a.weight)
    .map(({ match, base, weight, hasValues }) => {
      const confidence = weight / all
      return { ...match, confidence: hasValues ? confidence : Math.min(confidence, base) }
    })
}

/** "DEPRECATED: Use read_text_file instead": the tool that is named takes over the confidence of the other one. */
function replacements(known: readonly { match: RouteMatch; tool: StoredTool }[]): Map<RouteMatch, number> {
  const replaced = new Map<RouteMatch, number>()
  for (const { match, tool } of known) {
    const [, said = ''] = /\bdeprecated\b(.{0,200})/is.exec(tool.description) ?? []
    const named = new Set(said.match(/[\w-]+/g))
    const isNamed = (other: RouteMatch) => other.server === match.server && other !== match && named.has(other.tool)
    const successor = known.find((other) => isNamed(other.match))?.match
    if (!successor) continue
    replaced.set(
      successor,
      (replaced.get(successor) ?? successor.confidence) + (replaced.get(match) ?? match.confidence)
    )
    replaced.set(match, 0)
  }
  return replaced
}

/** By its name; whether it may run is decided elsewhere. */
function changes({ name, annotations }: StoredTool): boolean {
  return annotations?.readOnlyHint !== true && wordsOf(name).some((word) => meansEffect(word, WRITE_ORDERS))
}

function ordersChange(request: string, { name }: StoredTool): boolean {
  const said = wordsOf(withoutValues(request).replace(/\bpull\s+requests?\b/gi, ' '))
  // "Comment …" orders; "who reviewed …" and "reviews of …" don't.
  const first = said.find((word) => !POLITE.has(word))
  if (first !== undefined && wordsOf(name).includes(first)) return true
  return said.some((word) => MAKES.has(word) || meansEffect(word, WRITE_ORDERS) || meansEffect(word, EFFECT_WORDS))
}

/** Whether the only path of the sentence ends like a file's: "/a/b.txt". */
function namesFile(request: string): boolean {
  const [only, second] = literalsIn(request).filter(({ kind }) => kind === 'path')
  return only !== undefined && second === undefined && /\.[A-Za-z]\w{0,4}$/.test(only.text)
}

function toolWords(server: string, { name, description, inputSchema }: StoredTool) {
  const own = new Set(wordsOf(name).map(stem))
  const names = Object.keys(propertiesOf(inputSchema))
    .filter((each) => !isPaging(each))
    .join(' ')
  return { name: own, all: new Set(wordsOf(`${server} ${name} ${description.slice(0, 1000)} ${names}`).map(stem)) }
}

/** The word right before each value: "file /etc/hosts", "issue 42". */
function nounsOf(request: string): string[] {
  return literalsIn(request).flatMap(({ start }) => {
    const word = wordsOf(request.slice(Math.max(0, start - 40), start)).at(-1)
    return word === undefined || STOP_WORDS.has(word) ? [] : [stem(word)]
  })
}
