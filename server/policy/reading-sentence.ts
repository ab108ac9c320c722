/**
 * Whether the first sentence of a description plainly says that something is read: a reading verb, an object, and phrases with
 * known prepositions, nothing else. Invariant: a sentence of any other form fails, whatever its words are. So "Get the house
 * clean", "Find my phone: it rings" and "View an ad and get a coin" fail by their form; no list has to know "clean" or "rings".
 */
import { wordSet } from '../lib/word-set.ts'

/** The object that each verb needs. `data`: a noun that names data; `all`: also "all" or "available" with a plural. */
const VERBS: Record<string, 'data' | 'all'> = {
  get: 'data',
  find: 'data',
  view: 'data',
  read: 'data',
  describe: 'data',
  count: 'data',
  search: 'data',
  retrieve: 'data',
  return: 'data',
  list: 'all'
}

/** Nouns that name data, and nothing that a person could be given, hand out or use up. */
const DATA =
  wordSet(`attributes availability branches categories changelog columns commits comments configuration contents content coordinates count
  countries currencies dashboards databases definition definitions description descriptions details detail documentation documents
  entries fields files folders graph graphs history ids identifiers indexes indices info information issues languages list lists log
  logs metadata metrics names overview pages parameters permissions price prices projects properties rates records repositories rows
  schema schemas settings statistics stats status summaries summary timeline usage variables version versions weather`)

const DETERMINERS = wordSet('a an the all any each every this these those given specific specified')
/** Words that show that "list" means to show: nobody lists "all available" things for sale. */
const TOTAL = wordSet('all available existing supported')
const PREPOSITIONS = wordSet('of for in from by about within across with')
/** After "list", what could be the place where something is put: "list all flats for a client", "with a broker". */
const PLACING = wordSet('for with')
/** Words that begin a second statement, name a person, or say where something goes. */
const OTHER =
  wordSet(`and or but then so if when while which that who it they them its me you us we i my our your yourself myself ourselves mine yours
  him her to into onto on at as off out up down away over back aside through via upon ready aloud publicly public not no never
  instead one first last next oldest newest`)
/** Allowed right after a preposition. */
const OWNERS = wordSet('your its their')

const MAX_WORDS = 25
const MAX_PHRASE = 6

export function saysReading(description: string): boolean {
  const sentence = description
    .trim()
    .replace(/[.\s]+$/, '')
    .toLowerCase()
  // One statement only: no second sentence, clause, list or remark in brackets.
  if (!/^[a-z][a-z0-9 '’_-]*$/.test(sentence)) return false
  const [verb = '', ...words] = sentence.split(/\s+/)
  const base = baseOf(verb)
  const needs = base === undefined ? undefined : VERBS[base]
  if (needs === undefined || words.length === 0 || words.length > MAX_WORDS) return false
  const [object = [], ...phrases] = splitAtPrepositions(words)
  return isObject(object, needs) && phrases.every((phrase) => isPhrase(phrase, needs))
}

function baseOf(verb: string): string | undefined {
  const bases = [verb, verb.replace(/s$/, ''), verb.replace(/es$/, '')]
  return bases.find((base) => Object.hasOwn(VERBS, base))
}

/** The first part has no preposition, every other one begins with its own. */
function splitAtPrepositions(words: string[]): string[][] {
  const parts: string[][] = [[]]
  for (const word of words) {
    if (PREPOSITIONS.has(word)) parts.push([word])
    else parts.at(-1)?.push(word)
  }
  return parts
}

function isObject(words: string[], needs: 'data' | 'all'): boolean {
  const head = words.at(-1)
  if (head === undefined || words.length > MAX_PHRASE || words.some((word) => OTHER.has(word))) return false
  return DATA.has(head) || (needs === 'all' && words.some((word) => TOTAL.has(word)) && isPlural(head))
}

function isPhrase([preposition = '', ...words]: string[], needs: 'data' | 'all'): boolean {
  const head = words.at(-1)
  if (head === undefined || words.length > MAX_PHRASE || !isNoun(head)) return false
  if (needs === 'all' && PLACING.has(preposition) && !DETERMINERS.has(words[0] ?? '')) return false
  const [first = '', ...rest] = words
  if (rest.some((word) => OTHER.has(word)) || (OTHER.has(first) && !OWNERS.has(first))) return false
  // "In order", "in sync", "for sale": what a thing becomes has no article.
  return preposition === 'by' || DETERMINERS.has(first) || OWNERS.has(first) || isPlural(head) || DATA.has(head)
}

function isPlural(word: string): boolean {
  return /[a-z]{2}s$/.test(word) && !/(?:ss|us|is)$/.test(word)
}

/** "Get all bills of a customer paid": a participle or an adverb at the end says what happens. */
function isNoun(word: string): boolean {
  return !/(?:ed|ly|ing)$/.test(word) && !OTHER.has(word)
}

/** Words of a name that the description does not have to repeat. */
const SMALL = wordSet('a an the all of by for in from list info information details detail id ids tool')

/** Whether the description mentions the words of the tool's name after its verb. */
export function speaksOf(description: string, words: string[]): boolean {
  const said = description.toLowerCase().match(/[a-z0-9]+/g) ?? []
  const isSaid = (word: string) => SMALL.has(word) || said.some((other) => isSameWord(word, other))
  return words.every((word) => !OTHER.has(word) && isSaid(word))
}

/** Compares without the plural. A name may abbreviate: `docs` matches "documentation". */
function isSameWord(a: string, b: string): boolean {
  const [one, other] = [singular(a), singular(b)]
  return one === other || (one.length >= 3 && DATA.has(b) && other.startsWith(one))
}

function singular(word: string): string {
  if (/ies$/.test(word)) return `${word.slice(0, -3)}y`
  return isPlural(word) ? word.slice(0, -1) : word
}
