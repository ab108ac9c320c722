/**
 * Values that a sentence says in plain words: the choices of a list, switches, names after the parameter's own word ("branch
 * main"), and the rest of the sentence for the only text that is missing. Invariant: every value is in the sentence.
 */
import { isRecord } from '../../lib/is-record.ts'
import { wordSet } from '../../lib/word-set.ts'
import { wordsOf } from '../../policy/plain-reader.ts'
import { STOP_WORDS, WEAK_WORDS } from '../../routing/words/stop-words.ts'
import { typesOf } from './check-params.ts'
import { isGiven, listOf, type Place, type Schema, stem } from './fit-literals.ts'
import { endsWhole, isWhole, startsWhole } from './whole-values.ts'

export interface ToolWords {
  server?: string
  name: string
  description: string
}

type Values = Record<string, unknown>

/** Stands in place of a value that was taken from the sentence, so that nothing else takes it again. */
export const TAKEN = '\u0000'
const ORDERING = /^(?:sort|order|direction)/i
const MAX_REST = 500
/** Each choice of each parameter costs time in every search. */
const MAX_CHOICES = 500
const MAX_CHOICE_CHARS = 200

/** The choices in `enum`, also inside `anyOf`. */
function choicesOf({ enum: choices, anyOf }: Schema): string[] {
  const all = Array.isArray(choices) ? choices : []
  const nested = Array.isArray(anyOf) ? anyOf.filter(isRecord).flatMap(choicesOf) : []
  const texts = [...all, ...nested].filter((choice) => typeof choice === 'string')
  return texts.filter((choice) => choice.length <= MAX_CHOICE_CHARS).slice(0, MAX_CHOICES)
}

/** A required choice is enough if it is the only one said; an optional one must also belong to its parameter. */
export function saidChoices(sentence: string, tool: ToolWords, places: Place[]): Values {
  const found: Values = {}
  const own = new Set(wordsOf(tool.name).map(stem))
  for (const { name, property, isRequired } of places) {
    const said = choicesOf(property).flatMap((choice) =>
      placesOfChoice(sentence, choice).map((at) => ({ choice, ...at }))
    )
    const longest = said.filter(
      (one) => !said.some((two) => two !== one && two.start <= one.start && two.end > one.end)
    )
    const [verb] = longest.filter(({ choice }) => own.has(stem(choice)))
    const rest = longest.filter(({ choice }) => !own.has(stem(choice)))
    const [only, second] = rest.length > 0 ? rest : verb ? [verb] : []
    if (only === undefined || (second !== undefined && second.choice !== only.choice)) continue
    if (isRequired || belongs(sentence, only, name, own)) found[name] = only.choice
  }
  return found
}

function placesOfChoice(sentence: string, choice: string): { start: number; end: number }[] {
  const words = choice.split(/[\s_-]+/).filter((word) => word !== '')
  if (words.length === 0) return []
  // "Close the issue" says "closed".
  const last = words.length === 1 && choice.length > 4 ? `${escaped(stem(choice))}(?:e|es|ed|s|ing)?` : undefined
  const pattern = last ?? words.map(escaped).join('[\\s_-]+')
  return [...sentence.matchAll(new RegExp(`(?<![\\w-])${pattern}(?![\\w-])`, 'gi'))]
    .map(({ index, 0: text }) => ({ start: index, end: index + text.length }))
    .filter(({ start, end }) => isWhole(sentence, start, end))
}

/** "Sorted by size", "level error", "open issues", "as png". */
function belongs(sentence: string, at: { start: number; end: number }, name: string, tool: Set<string>): boolean {
  const before = wordsOf(clauseBefore(sentence, at.start)).slice(-3)
  const after = wordsOf(sentence.slice(at.end).split(/[.;!?,]/)[0] ?? '').slice(0, 2)
  const parts = wordsOf(name).map(stem)
  if ([...before, ...after.slice(0, 1)].some((word) => parts.includes(stem(word)))) return true
  if (ORDERING.test(name)) return false
  return (
    after.some((word) => tool.has(stem(word))) ||
    /\b(?:with|as|using)\s+(?:the\s+|an?\s+)?$/i.test(sentence.slice(0, at.start))
  )
}

function clauseBefore(sentence: string, end: number): string {
  return (
    sentence
      .slice(0, end)
      .split(/[.;!?,]\s/)
      .at(-1) ?? ''
  )
}

/** "Full page" sets `fullPage`. Words of the tool's name say nothing about a switch. */
export function saidSwitches(sentence: string, tool: ToolWords, places: Place[]): Values {
  const found: Values = {}
  const said = wordsOf(sentence).map(stem)
  const own = new Set(wordsOf(tool.name).map(stem))
  for (const { name, property } of places) {
    const types = typesOf(property)
    if (!types.includes('boolean') || types.includes('string')) continue
    const parts = wordsOf(name).map(stem)
    if (parts.length === 0 || parts.some((part) => own.has(part) && parts.length === 1)) continue
    const [verb, ...what] = parts
    const isIncluded = verb !== undefined && INCLUDES.has(verb) && what.length > 0 && isAskedWith(sentence, what)
    const isSaid =
      isIncluded ||
      said.some((_, at) => {
        const near = said.slice(at, at + parts.length + 1)
        return parts.includes(said[at] ?? '') && parts.every((part) => near.includes(part))
      })
    if (isSaid) found[name] = true
  }
  return found
}

const INCLUDES = wordSet('includ with show add')

/** "With an image" sets `includeImage`. */
function isAskedWith(sentence: string, what: string[]): boolean {
  return [...sentence.matchAll(/\b(?:with|including)\s+((?:[\w-]+\s*){1,4})/gi)].some(([, text = '']) => {
    const words = wordsOf(text).filter((word) => !LITTLE.test(word))
    return what.every((part, at) => stem(words[at] ?? '') === part)
  })
}

const NAME = String.raw`[\p{L}\p{N}][\p{L}\p{N}_.-]*[\p{L}\p{N}]|[\p{L}\p{N}]`
/** The text that may follow a name. Before other text, the word may be the beginning of a longer term. */
const AFTER_NAME = String.raw`(?=\s*(?:$|[.,;!?)\u0000])|\s+(?:of|in|on|from|to|for|with|and|at|by|as|into|using|please)\b)`
/** Weak words that are common names of collections and tables: "collection users". */
const NAMES_OF_SETS = wordSet(
  `users people persons apps services functions features options questions answers requests results plans tools examples friends companies
  colleagues days weeks months years`
)
const PAIRS: [RegExp, RegExp][] = [[/^(?:head|source|src|from|start|old)/i, /^(?:base|dest|to$|end|new)/i]]

/** "Branch main", "database shop", "from fix-login to main". */
export function saidNames(sentence: string, tool: ToolWords, places: Place[]): Values {
  const found: Values = {}
  const texts = places.filter(({ property }) => isText(property) || listOf(property) !== undefined)
  const known = new Set([...wordsOf(tool.name), ...texts.flatMap(({ name }) => wordsOf(name))].map(stem))
  const put = ({ name, property }: Place, value: string) => {
    found[name] = listOf(property) ? [value] : value
  }
  const pair = new RegExp(`\\bfrom\\s+(${NAME})\\s+(?:to|into)\\s+(${NAME})${AFTER_NAME}`, 'iu').exec(sentence)
  for (const [first, second] of pair && endsWhole(sentence, pair.index + pair[0].length) ? PAIRS : []) {
    const [a, b] = [first, second].map((pattern) => texts.filter(({ name }) => pattern.test(name)))
    if (a?.length === 1 && b?.length === 1 && a[0] && b[0]) {
      put(a[0], pair?.[1] ?? '')
      put(b[0], pair?.[2] ?? '')
    }
  }
  for (const place of texts) {
    if (isGiven(found, place.name)) continue
    const words = [...wordsSaid(place.name), ...nounSaid(tool, place)].join('|')
    const listed = listOf(place.property) ? namesListed(sentence, words, known) : []
    if (listed.length > 1) {
      found[place.name] = listed
      continue
    }
    const pattern = new RegExp(`(?<![\\w-])(?:${words})s?\\s+(?:(?:is|called|named)\\s+)?(${NAME})${AFTER_NAME}`, 'giu')
    const values = [...sentence.matchAll(pattern)].flatMap(({ index, 0: said, 1: value = '' }) => {
      const lower = value.toLowerCase()
      // "Main,dev" has no name.
      if (!endsWhole(sentence, index + said.length)) return []
      const isWeak = WEAK_WORDS.has(lower) && !(place.isRequired && NAMES_OF_SETS.has(lower))
      const isWord = STOP_WORDS.has(lower) || isWeak || known.has(stem(lower))
      return isWord || Object.values(found).includes(value) ? [] : [value]
    })
    const [only] = values
    if (values.length === 1 && only !== undefined) put(place, only)
  }
  return found
}

/** `names` of `open_nodes` are said as "node Alpha" and "nodes Alpha and Beta". */
function nounSaid(tool: ToolWords, { name }: Place): string[] {
  const noun = wordsOf(tool.name)
    .at(-1)
    ?.replace(/(?<=[^s])s$/, '')
  return /^names?$/.test(name) && noun !== undefined && noun.length > 2 ? [escaped(noun)] : []
}

/** "Nodes Alpha, Beta and Gamma". */
function namesListed(sentence: string, words: string, known: ReadonlySet<string>): string[] {
  const names = `(?:${NAME})(?:(?:\\s*,\\s*(?:and\\s+)?|\\s+and\\s+)(?:${NAME}))+`
  const pattern = new RegExp(`(?<![\\w-])(?:${words})s?\\s+(?:(?:called|named)\\s+)?(${names})${AFTER_NAME}`, 'iu')
  const match = pattern.exec(sentence)
  if (!match || !endsWhole(sentence, match.index + match[0].length)) return []
  const listed = (match[1] ?? '').split(/\s*,\s*(?:and\s+)?|\s+and\s+/i)
  const isName = (word: string) => !STOP_WORDS.has(word) && !WEAK_WORDS.has(word) && !known.has(stem(word))
  return listed.every((word) => isName(word.toLowerCase())) ? listed : []
}

/** `deploymentName` is said as "deployment name" or "deployment", `from_branch` as "from". */
function wordsSaid(name: string): string[] {
  const parts = wordsOf(name).map((part) => part.replace(/(?<=[^s])s$/, ''))
  const all = [parts.join('\\s+')]
  if (parts.length > 1 && /^(?:id|name|string|number)$/.test(parts.at(-1) ?? ''))
    all.push(parts.slice(0, -1).join('\\s+'))
  if (parts[0] === 'from') all.push('from')
  if (name === 'entityNames') all.push('entity', 'entities')
  if (parts.at(-1) === 'name' && parts.length === 1) all.push('called', 'named')
  if (parts.at(-1) === 'title') all.push('titled')
  return all.filter((word) => word !== '')
}

function isText(property: Schema): boolean {
  return typesOf(property).includes('string') && choicesOf(property).length === 0 && property.format === undefined
}

const LONG_TEXT =
  /(?:text|query|search|message|title|body|content|contents|prompt|question|topic|term|thought|description|comment|input|q)$/i
const NO_TEXT = /(?:path|file|dir|folder|directory|ur[il]|id|date|mail|sha|owner|repo)(?:s|_?name)?$/i
const POLITE =
  /^(?:[\s,.!:]+|(?:please|kindly|hey|hi|ok|okay|now|just|(?:can|could|would|will)\s+you|i\s+(?:want|need|would\s+like)\s+(?:you\s+)?to)\b(?=\s))+/i
const CONNECTOR = /:\s+|(?<![\w-])(?:for|about|regarding|concerning|named|called|titled|saying)\s+/gi
const SEARCHED = /(?:query|search|topic|term|pattern|q)$/i
const READING = wordSet(
  'search find look lookup get show give list query tell me read check browse fetch retrieve create make open'
)
/** "… and show page 2" is more than one text. */
const MORE_ORDERS =
  /[.;!?]\s+\S|\b(?:and|then)\s+(?:then\s+)?(?:show|list|open|give|tell|sort|send|make|get|find|read|write|delete|remove|save|limit|page)\b/i
const LITTLE = /^(?:the|an?|my|our|your|this|that|me|for|please|of)$/
const EMPTY = wordSet('it this that these those them something anything everything stuff things')

/** The rest of the sentence, after the words for the tool itself. */
export function restOf(sentence: string, tool: ToolWords, place: Place, places: Place[]): unknown {
  const { name, property } = place
  if ((!isText(property) && !listOf(property)) || NO_TEXT.test(name)) return undefined
  const said = sentence.replace(POLITE, (text) => ' '.repeat(text.length))
  const rest = (afterConnector(said, tool, places, SEARCHED.test(name)) ?? afterVerb(said, tool, name))
    ?.replace(/[\s.!?]+$/, '')
    .trim()
  if (rest === undefined || rest === '' || rest.length > MAX_REST || rest.includes(TAKEN)) return undefined
  if (MORE_ORDERS.test(rest) || !/[\p{L}\p{N}]/u.test(rest) || isEmpty(rest, tool)) return undefined
  if (!LONG_TEXT.test(name) && /\s/.test(rest)) return undefined
  return listOf(property) ? [rest] : rest
}

/** "It", or only words for what the tool is about: "tell me about the repo". */
function isEmpty(rest: string, tool: ToolWords): boolean {
  const own = new Set(wordsOf(`${tool.name} ${tool.description.slice(0, 300)}`).map(stem))
  const isOwn = (word: string) => [...own].some((other) => stem(word).length > 2 && other.startsWith(stem(word)))
  const words = rest.toLowerCase().split(/\s+/)
  if (words.every((word) => EMPTY.has(word) || LITTLE.test(word))) return true
  return (
    LITTLE.test(words[0] ?? '') && words.slice(1).every((word) => EMPTY.has(word) || LITTLE.test(word) || isOwn(word))
  )
}

/** After the first "for", "about" or ":" that only words of the tool come before. */
function afterConnector(said: string, tool: ToolWords, places: Place[], isSearch: boolean): string | undefined {
  const text = `${tool.server ?? ''} ${tool.name} ${tool.description.slice(0, 500)} ${places.map(({ name }) => name).join(' ')}`
  const own = new Set(wordsOf(text).map(stem))
  let found: string | undefined
  for (const { index, 0: connector } of said.matchAll(CONNECTOR)) {
    const rest = said.slice(index + connector.length)
    const before = wordsOf(said.slice(0, index))
    const isKnown = before.every((word) => STOP_WORDS.has(word) || READING.has(word) || own.has(stem(word)))
    if (!isKnown) break
    if (rest.includes(TAKEN)) continue
    // In "search for users named X", only X is searched for.
    if (isSearch || found === undefined) found = rest
  }
  return found !== undefined && isSearch ? withoutPlace(found, own) : found
}

/** "Deployment in the knowledge graph", if the tool searches the knowledge graph, is "deployment". */
function withoutPlace(rest: string, own: ReadonlySet<string>): string {
  const [, before, place] =
    /^(.*\S)\s+(?:in|from|of|on|within|inside)\s+(?:(?:the|my|our|your)\s+)?([\w\s-]+?)[\s.!?]*$/i.exec(rest) ?? []
  if (before === undefined || place === undefined) return rest
  return wordsOf(place).every((word) => own.has(stem(word))) ? before : rest
}

/** After the words of the tool's name that the sentence begins with: "echo …". */
function afterVerb(said: string, tool: ToolWords, name: string): string | undefined {
  const own = new Set(wordsOf(tool.name).map(stem))
  let isNamed = false
  let article: number | undefined
  for (const { index, 0: word } of said.matchAll(/[^\s,:]+/g)) {
    const isOwn = /^[A-Za-z-]+$/.test(word) && wordsOf(word).every((part) => own.has(stem(part)))
    if (isOwn) {
      isNamed = true
      article = undefined
    } else if (isNamed && /^(?:the|an?|my)$/i.test(word)) article ??= index
    else if (!/^(?:the|an?|my|me|back|out)$/i.test(word) || !isNamed) {
      // "Echo the news" repeats the article too; a search does not look for it.
      const isText = LONG_TEXT.test(name) && !SEARCHED.test(name)
      const rest = isNamed && startsWhole(said, index) ? said.slice(isText ? (article ?? index) : index) : undefined
      // "Search the attic for mice": what is searched for comes later.
      return rest !== undefined && SEARCHED.test(name) && rest.search(CONNECTOR) >= 0 ? undefined : rest
    }
  }
  return undefined
}

export function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}
