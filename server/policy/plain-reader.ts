/**
 * Decides whether a tool plainly only reads, by its name, description and parameters. Used only for servers that annotate none of
 * their tools. Invariant: when in doubt, a tool does not count as a reader. A reader that fails this test costs one confirmation; a writer
 * that passes would run without being asked about. `bench/readers.ts` prints what passes in the routing data sets.
 */

import type { StoredTool } from '../catalog/stored-tools.ts'
import { isRecord } from '../lib/is-record.ts'
import { wordSet } from '../lib/word-set.ts'
import { AMBIGUOUS_WORDS, EFFECT_WORDS } from './effect-words.ts'
import { saysReading, speaksOf } from './reading-sentence.ts'

/** The name must begin with one of these; the name of the service may come before it (`slack_list_channels`). */
const NAME_VERBS = wordSet('get list read search find describe view count lookup retrieve')

/** Rule out `get_or_create`, `get_next_job` (takes it off a queue) and `get_new_address` (creates one). */
const NAME_TRAPS = wordSet('and or then with next new first random once replace lock token')

/** A verb may follow these words; after any other word, an ambiguous word counts as a noun. */
const BEFORE_VERB =
  wordSet(`and or then to will would can could may might must should shall also before after while by it they which that who not
   optionally possibly either both additionally afterwards subsequently`)

/** Parameters with these names hold something that is run, sent or written. */
const PARAMETER_TRAPS =
  wordSet(`code script command cmd statement expression method body payload content contents data patch value values action operation
   mode output destination dest target force confirm dry`)

/** "… and leases it for ten minutes": whatever the verb is, something is done to the item after reading it. */
const DONE_TO_IT = /\b(?:and|then|before|after|while)\s+(?:[\w-]+\s+){1,3}(?:it|them|those|these)\b/i
/** No hidden characters, and no languages that the word lists don't cover. */
const PLAIN_TEXT = /^[\t\n\r\x20-\x7e‘’“”–—…•→]*$/
const MIN_WORDS = 3
const MAX_DESCRIPTION = 1500
const MAX_PARAMETERS = 50

type Reader = Pick<StoredTool, 'name' | 'description' | 'inputSchema'>

export function isPlainReader({ name, description, inputSchema }: Reader): boolean {
  const about = objectOfName(name)
  return about !== undefined && isReaderDescription(description, about) && hasHarmlessParameters(inputSchema)
}

/** The words that name what is read; undefined if the name is not plainly a reader's. */
function objectOfName(name: string): string[] | undefined {
  if (!PLAIN_TEXT.test(name)) return undefined
  const parts = wordsOf(name)
  const at = parts.findIndex((part) => NAME_VERBS.has(part))
  if (at !== 0 && at !== 1) return undefined
  // `email_list` may mean to email it.
  if (at === 1 && meansEffect(parts[0] ?? '', AMBIGUOUS_WORDS)) return undefined
  if (parts.some((part, index) => index !== at && (NAME_TRAPS.has(part) || meansEffect(part, EFFECT_WORDS))))
    return undefined
  return parts.length > at + 1 ? parts.slice(at + 1) : parts.slice(0, at)
}

function isReaderDescription(description: string, about: string[]): boolean {
  if (description.length > MAX_DESCRIPTION || !PLAIN_TEXT.test(description)) return false
  if (wordsOf(description).length < MIN_WORDS) return false
  return about.length > 0 && saysReading(description) && speaksOf(description, about) && isHarmlessText(description)
}

function isHarmlessText(text: string): boolean {
  if (!PLAIN_TEXT.test(text) || DONE_TO_IT.test(text)) return false
  return text.split(/[.;:!?,()[\]\n]/).every((clause) => {
    const found = wordsOf(clause)
    return found.every((word, at) => {
      if (meansEffect(word, EFFECT_WORDS)) return false
      const mayBeVerb = at === 0 || BEFORE_VERB.has(found[at - 1] ?? '')
      return !mayBeVerb || !meansEffect(word, AMBIGUOUS_WORDS)
    })
  })
}

function hasHarmlessParameters(schema: Record<string, unknown>): boolean {
  const properties = isRecord(schema.properties) ? Object.entries(schema.properties) : []
  if (properties.length > MAX_PARAMETERS) return false
  return properties.every(([name, property]) => {
    const about = isRecord(property) && typeof property.description === 'string' ? property.description : ''
    const parts = wordsOf(name)
    if (!PLAIN_TEXT.test(name) || parts.some((part) => PARAMETER_TRAPS.has(part) || meansEffect(part, EFFECT_WORDS)))
      return false
    return about.length <= MAX_DESCRIPTION && isHarmlessText(about)
  })
}

/** Splits text into lower-case words, and identifiers into their parts. */
export function wordsOf(text: string): string[] {
  const parts = text.replace(/(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/g, ' ').match(/[A-Za-z]+/g) ?? []
  return parts.map((part) => part.toLowerCase())
}

/** True for a word in `known` and for its forms: `deletes`, `deleted`, `deleting`, `copies`, `stopped`, `reset`. */
export function meansEffect(word: string, known: ReadonlySet<string>): boolean {
  return basesOf(word).some((base) => known.has(base))
}

function basesOf(word: string): string[] {
  const bases = [word]
  const undouble = (stem: string) => (/(.)\1$/.test(stem) ? [stem.slice(0, -1)] : [])
  const add = (stem: string) => bases.push(stem, `${stem}e`, ...undouble(stem))
  if (word.endsWith('ies') || word.endsWith('ied')) bases.push(`${word.slice(0, -3)}y`)
  if (word.endsWith('s')) bases.push(word.slice(0, -1))
  if (word.endsWith('es')) bases.push(word.slice(0, -2))
  if (word.endsWith('ed')) add(word.slice(0, -2))
  if (word.endsWith('ing')) add(word.slice(0, -3))
  if (word.endsWith('er') || word.endsWith('or')) add(word.slice(0, -2))
  if (word.startsWith('re') || word.startsWith('un')) bases.push(...[word.slice(2)].filter((rest) => rest.length > 4))
  return bases
}
