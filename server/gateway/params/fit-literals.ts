/**
 * Gives the values that a sentence spells out to the parameters they fit: by type, name, format, description, and the words
 * around the value. Invariant: where two values or two parameters fit equally well, nobody gets anything.
 */
import { isRecord } from '../../lib/is-record.ts'
import { wordsOf } from '../../policy/plain-reader.ts'
import type { Literal } from '../../routing/words/literals.ts'
import { STOP_WORDS } from '../../routing/words/stop-words.ts'
import { requiredOf, typesOf } from './check-params.ts'
import { repositoryOf } from './repository-of.ts'

export type Schema = Record<string, unknown>

export interface Place {
  name: string
  property: Schema
  isRequired: boolean
}

interface Fit {
  literal: Literal
  place: Place
  score: number
}

/** Less than this is no difference. */
const MARGIN = 0.3
/** An optional parameter gets only what the words around the value speak of. */
const SPOKEN_OF = 0.6
/** A required parameter comes first, even if the words speak of an optional one. */
const REQUIRED = 1.5
const WHOLE_NAME = 0.5
const BEFORE = [2, 1.5, 1]
const AFTER = [1.5, 1]
/** Words for parameters that are rarely said as they are named. */
const SAID_AS: Record<string, string[]> = {
  pr: ['pull', 'request'],
  titled: ['title'],
  called: ['name'],
  named: ['name'],
  folder: ['directory', 'path'],
  seconds: ['time', 'duration'],
  saying: ['message', 'body', 'text'],
  into: ['target', 'destination', 'to', 'end'],
  to: ['destination', 'to', 'end', 'new'],
  with: ['new'],
  from: ['source', 'from', 'start', 'old'],
  since: ['since', 'start'],
  until: ['until', 'end'],
  in: ['path', 'directory', 'target'],
  for: ['query', 'pattern', 'text'],
  words: ['text'],
  contains: ['text', 'query'],
  contain: ['text', 'query']
}

const PATH_NAME =
  /(?:^|[^a-z])(?:path|file|dir|folder|directory|source|src|destination|dest)(?:s|_?name)?$|(?:Path|File|Dir|Folder|Directory)(?:s|[Nn]ame)?$/
const ID_NAME = /(?:id|ref|key|target|element|name|number|code|sha|hash|tag|branch)s?$/i
/** Nobody asks for issue 4.2, whatever the schema allows. */
const COUNT_NAME = /(?:^|[^a-z])(?:id|number|count|page|limit)s?$|(?:Id|ID|Number|Count|Page|Limit)s?$/
const DATE_NAME = /(?:date|since|until|before|after|from|to|start|end|day|when|time)$/i
const TEXT_NAME =
  /^text[A-Z_]|(?:text|query|search|message|title|body|content|contents|prompt|question|topic|term|function|code|description|comment|q)$/i

/** Assigns the remaining literals to `places`, and removes each assigned one from `literals`. */
export function fitLiterals(sentence: string, literals: Literal[], places: Place[]): Record<string, unknown> {
  const filled: Record<string, unknown> = giveRepository(literals, places)
  const open = () => places.filter(({ name }) => filled[name] === undefined)
  const take = (literal: Literal) => literals.splice(literals.indexOf(literal), 1)
  for (;;) {
    const clear = clearest(fitsOf(sentence, literals, open()))
    if (!clear) break
    for (const { literal } of clear) take(literal)
    Object.assign(filled, valuesOf(clear))
  }
  return filled
}

/** `owner` and `repo` belong together. If another value has the same form, the one without a file's ending is the repository. */
function giveRepository(literals: Literal[], places: Place[]): Record<string, unknown> {
  const names = new Set(places.map(({ name }) => name))
  if (!names.has('owner') || !names.has('repo')) return {}
  const all = literals.filter((literal) => repositoryOf(literal))
  const found = all.length > 1 ? all.filter(({ text }) => !/\.[a-z]\w{0,4}$/i.test(text)) : all
  const [only] = found
  const repository = only && found.length === 1 ? repositoryOf(only) : undefined
  if (only === undefined || repository === undefined) return {}
  literals.splice(literals.indexOf(only), 1)
  return repository
}

function fitsOf(sentence: string, literals: Literal[], places: Place[]): Fit[] {
  return literals.flatMap((literal) => {
    const around = wordsAround(sentence, literal, literals)
    return places.flatMap((place) => {
      const kind = fitOfKind(literal, place)
      const context = spokenOf(around, place)
      if (kind === 0 || (!place.isRequired && context < SPOKEN_OF)) return []
      return [{ literal, place, score: kind + context + (place.isRequired ? REQUIRED : 0) }]
    })
  })
}

/** The best fit that has no rival, or a row of equal ones: two numbers for `a` and `b`, all paths for `paths`. */
function clearest(fits: Fit[]): Fit[] | undefined {
  for (const best of fits.toSorted((a, b) => b.score - a.score)) {
    const rivals = fits.filter((fit) => fit.place === best.place && fit.literal !== best.literal)
    const near = rivals.filter(({ score }) => score > best.score - MARGIN)
    if (listOf(best.place.property)) {
      const all = [best, ...rivals].filter(({ literal }) => isAlike(literal, best.literal))
      return all.toSorted((a, b) => a.literal.start - b.literal.start)
    }
    const others = fits.filter((fit) => fit.literal === best.literal && fit.place !== best.place)
    const isClear = others.every(({ score }) => score <= best.score - MARGIN)
    if (isClear && near.length === 0) return [best]
    const row = inOrder(fits, best)
    if (row) return row
  }
  return undefined
}

const PATHS = new Set<string>(['path', 'repo', 'file'])

/** Values of one list. */
function isAlike({ kind }: Literal, other: Literal): boolean {
  return kind === other.kind || (PATHS.has(kind) && PATHS.has(other.kind))
}

/** As many numbers as required parameters for one, in the same order. */
function inOrder(fits: Fit[], { literal, place }: Fit): Fit[] | undefined {
  if (literal.kind !== 'number' || !place.isRequired) return undefined
  const own = fits.filter((fit) => fit.literal.kind === 'number' && fit.place.isRequired)
  const literals = [...new Set(own.map((fit) => fit.literal))].toSorted((a, b) => a.start - b.start)
  const places = [...new Set(own.map((fit) => fit.place))]
  if (literals.length !== places.length || own.length !== literals.length ** 2) return undefined
  return places.flatMap((each, at) => own.filter((fit) => fit.place === each && fit.literal === literals[at]))
}

function valuesOf(fits: Fit[]): Record<string, unknown> {
  const values: Record<string, unknown> = {}
  for (const { literal, place } of fits) {
    const { name, property } = place
    const list = listOf(property)
    const value = valueFor(list ?? property, literal)
    const before = isGiven(values, name) ? values[name] : []
    if (list) values[name] = [...(Array.isArray(before) ? before : []), value]
    else values[name] = value
  }
  return values
}

function valueFor(property: Schema, { kind, text }: Literal): unknown {
  const types = typesOf(property)
  return kind === 'number' && (types.includes('number') || types.includes('integer')) ? Number(text) : text
}

/** The schema of the items, if it is a list of texts. */
export function listOf({ type, items }: Schema): Schema | undefined {
  return type === 'array' && isRecord(items) && typesOf(items).includes('string') && !items.enum ? items : undefined
}

/** How well the kind of the value fits the parameter's type, format and name; 0 if not at all. */
function fitOfKind({ kind, text }: Literal, { name, property }: Place): number {
  const schema = listOf(property) ?? property
  const types = typesOf(schema)
  const about = typeof property.description === 'string' ? property.description : ''
  if (kind === 'number') {
    const isWhole = Number.isInteger(Number(text))
    const takesPart = types.includes('number') && !COUNT_NAME.test(name)
    return takesPart || (isWhole && types.some((type) => type === 'number' || type === 'integer')) ? 2 : 0
  }
  if (!types.includes('string') || Array.isArray(schema.enum)) return 0
  const { format } = schema
  const isUrl = format === 'uri' || /ur[il]$|connectionString$/i.test(name) || /\bUR[IL]\b/.test(about.slice(0, 200))
  const isPath = PATH_NAME.test(name) || (/id$/i.test(name) && /['"`(]\/[\w-]+\/[\w.-]+/.test(about))
  const isPattern = /(?:pattern|glob)s?$/i.test(name)
  switch (kind) {
    case 'url':
      return isUrl ? 3 : 0
    case 'email':
      return format === 'email' || /e?mail/i.test(name) ? 3 : 0
    case 'glob':
      return isPattern ? 3 : 0
    case 'path':
      return isPath ? 3 : 0
    case 'repo':
      return isPath ? 2.5 : 0
    case 'file':
      return isPath ? 2.5 : isUrl ? 2 : isPattern ? 1.5 : /name$/i.test(name) ? 1 : 0
    case 'date':
      // Which part of 04/05/2026 is the month, nobody knows.
      return /^\d{4}-\d{2}-\d{2}/.test(text) && (format?.toString().startsWith('date') || DATE_NAME.test(name)) ? 2 : 0
    case 'id':
      return format === undefined && !isPath && !isUrl && ID_NAME.test(name) ? 2 : 0
    case 'quoted': {
      if (format !== undefined && !(isUrl && URL.canParse(text))) return 0
      if (/^[/~]|^\.{1,2}\//.test(text)) return isPath ? 3 : 0.5
      if (/\*/.test(text) && isPattern) return 3
      if (/^[#.][\w-]/.test(text)) return /target|selector|element/i.test(name) ? 2 : 0.5
      return isPath || isUrl ? 0.5 : TEXT_NAME.test(name) ? 1.6 : 1
    }
  }
}

interface Around {
  before: string[]
  after: string[]
}

/** The words next to the value, nearest first, up to the next value or the end of the clause. */
function wordsAround(sentence: string, { start, end }: Literal, literals: Literal[]): Around {
  const from = Math.max(0, ...literals.filter((other) => other.end <= start).map((other) => other.end))
  const to = Math.min(sentence.length, ...literals.filter((other) => other.start >= end).map((other) => other.start))
  const before =
    sentence
      .slice(from, start)
      .split(/[.;!?,]\s/)
      .at(-1) ?? ''
  const after = sentence.slice(end, to).split(/[.;!?,](?:\s|$)/)[0] ?? ''
  return {
    before: wordsOf(before)
      .filter((word) => !/^(?:the|a|an|my)$/.test(word))
      .toReversed()
      .slice(0, BEFORE.length),
    after: wordsOf(after).slice(0, AFTER.length)
  }
}

function spokenOf({ before, after }: Around, { name, property }: Place): number {
  const own = new Set(wordsOf(name).map(stem))
  const described = typeof property.description === 'string' ? property.description.slice(0, 300) : ''
  const about = new Set(
    wordsOf(described)
      .filter((word) => !STOP_WORDS.has(word))
      .map(stem)
  )
  let score = 0
  const met = new Set<string>()
  const look = (words: string[], weights: number[]) => {
    for (const [at, word] of words.entries()) {
      const weight = weights[at] ?? 0
      const meant = [word, ...(weights === BEFORE ? (Object.hasOwn(SAID_AS, word) ? (SAID_AS[word] ?? []) : []) : [])]
      const part = meant.map(stem).find((each) => own.has(each))
      if (part !== undefined) met.add(part)
      if (part !== undefined) score += weight
      else if (!STOP_WORDS.has(word) && about.has(stem(word))) score += weight * 0.5
    }
  }
  look(before, BEFORE)
  look(after, AFTER)
  // "Page 2" means `page`, not `perPage`.
  return met.size > 0 && met.size === own.size ? score + WHOLE_NAME : score
}

export function stem(word: string): string {
  const lower = word.toLowerCase()
  return lower.length > 4 ? lower.replace(/(?:ies|ing|ed|es|s|e|y)$/, '') : lower.replace(/(?<=..)s$/, '')
}

/** A server may call a parameter `constructor`. */
export function isGiven(values: Record<string, unknown>, name: string): boolean {
  return Object.hasOwn(values, name) && values[name] !== undefined
}

export function placesOf(schema: Schema, properties: Record<string, Schema>, given: Schema): Place[] {
  const required = new Set(requiredOf(schema))
  return Object.entries(properties)
    .filter(([name]) => !isGiven(given, name))
    .map(([name, property]) => ({ name, property, isRequired: required.has(name) }))
}
