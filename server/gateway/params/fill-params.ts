/**
 * Fills a tool's missing parameters from the sentence. Invariant: a value is in the sentence, or is a choice or a switch that the
 * sentence names; what the sentence leaves out is never a value; the caller's values stay.
 */
import { isRecord } from '../../lib/is-record.ts'
import type { Literal } from '../../routing/words/literals.ts'
import { propertiesOf, requiredOf } from './check-params.ts'
import { withoutExcluded } from './excluded-values.ts'
import { fitLiterals, isGiven, type Place, placesOf, type Schema } from './fit-literals.ts'
import { takeNamed } from './named-values.ts'
import { wholeLiterals } from './whole-values.ts'
import { restOf, saidChoices, saidNames, saidSwitches, TAKEN, type ToolWords } from './word-values.ts'

type Params = Record<string, unknown>

export interface FillableTool extends ToolWords {
  inputSchema: Schema
}

export interface Filled {
  params: Params
  /** Parameters that the sentence does not name: their values were matched by kind and context. */
  matched: string[]
  /** Parameters that the sentence names, and whose values have no certain end. */
  unclear: string[]
}

export function fillParams(tool: FillableTool, given: Params, request: string): Filled {
  const { inputSchema } = tool
  const properties = propertiesOf(inputSchema)
  const sentence = withoutExcluded(request)
  const { values: named, unclear, rest } = takeNamed(properties, given, sentence)
  const params: Params = { ...named, ...given }
  const matched = matchRest(tool, params, rest)
  return { params: { ...named, ...matched, ...given }, matched: Object.keys(matched), unclear }
}

/** Only what the sentence names with the parameter's own name; undefined if that is not all that is required. */
export function fillNamed(schema: Schema, given: Params, request: string): Params | undefined {
  const { values } = takeNamed(propertiesOf(schema), given, withoutExcluded(request))
  const params = { ...values, ...given }
  return requiredOf(schema).every((name) => isGiven(params, name)) ? params : undefined
}

function matchRest({ inputSchema, ...tool }: FillableTool, known: Params, sentence: string): Params {
  const isPlain = (value: unknown) => typeof value !== 'object'
  const used = new Set(Object.values(known).flat().filter(isPlain).map(String))
  const own = `${tool.server ?? ''} ${tool.name}`.toLowerCase()
  // "The context7 library" names the server, not a value.
  const literals = wholeLiterals(sentence).filter(
    ({ kind, text }) => !used.has(text) && !(kind === 'id' && own.includes(text.toLowerCase()))
  )
  const all = [...literals]
  const places = placesOf(inputSchema, propertiesOf(inputSchema), known)
  const found: Params = {}
  const open = () => places.filter(({ name }) => !isGiven(found, name))
  Object.assign(found, replacement(sentence, literals, open()))
  Object.assign(found, fitLiterals(sentence, literals, open()))
  const plain = mask(sentence, all)
  Object.assign(found, saidChoices(plain, tool, open()))
  Object.assign(found, saidSwitches(plain, tool, open()))
  const taken = all.filter((literal) => !literals.includes(literal))
  const names = saidNames(plain, tool, open())
  Object.assign(found, Object.keys(found).length > 0 || isNeeded(names, open()) ? names : {})
  const missing = open().filter(({ isRequired }) => isRequired)
  const [only] = missing
  if (only && missing.length === 1) {
    const rest = restOf(mask(sentence, taken), tool, only, places)
    if (rest !== undefined) found[only.name] = rest
  }
  return found
}

/** Names in plain words are a weak sign: for optional parameters they count only if something else was found too. */
function isNeeded(names: Params, places: Place[]): boolean {
  return places.some(({ name, isRequired }) => isRequired && isGiven(names, name))
}

function mask(sentence: string, literals: Literal[]): string {
  let masked = sentence
  for (const { start, end } of literals) masked = masked.slice(0, start) + TAKEN.repeat(end - start) + masked.slice(end)
  return masked
}

/** "Replace A with B" for a list of `{old…, new…}`. */
function replacement(sentence: string, literals: Literal[], places: Place[]): Params {
  const quoted = literals.filter(({ kind }) => kind === 'quoted')
  const [old, next] = quoted
  if (!old || !next || quoted.length !== 2) return {}
  if (!/^\s*(?:with|to|by|->|→)\s*$/i.test(sentence.slice(old.end, next.start))) return {}
  const found: Params = {}
  for (const { name, property, isRequired } of places) {
    const items = isRequired && isRecord(property.items) ? property.items : {}
    const names = Object.keys(propertiesOf(items))
    const [before, after] = [/^(?:old|from|search|find)/i, /^(?:new|to|replace)/i].map((is) =>
      names.filter((one) => is.test(one))
    )
    if (before?.length !== 1 || after?.length !== 1 || before[0] === undefined || after[0] === undefined) continue
    found[name] = [{ [before[0]]: old.text, [after[0]]: next.text }]
  }
  if (Object.keys(found).length !== 1) return {}
  for (const literal of [old, next]) literals.splice(literals.indexOf(literal), 1)
  return found
}
