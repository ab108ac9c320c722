/**
 * Fills a tool's missing parameters from the sentence. Invariant: a value is in the sentence, or is a choice or a switch that the
 * sentence names; what the sentence leaves out is never a value; the caller's values stay.
 */
import { isRecord } from '../../lib/is-record.ts'
import { propertiesOf, requiredOf, typesOf } from './check-params.ts'
import { withoutExcluded } from './excluded-values.ts'
import { fitLiterals, type Place, placesOf, type Schema } from './fit-literals.ts'
import { type Literal, literalsIn } from './literals.ts'
import { restOf, saidChoices, saidNames, saidSwitches, TAKEN, type ToolWords } from './word-values.ts'

type Params = Record<string, unknown>

export interface FillableTool extends ToolWords {
  inputSchema: Schema
}

export interface Filled {
  params: Params
  /** Parameters that the sentence does not name: their values were matched by kind and context. */
  matched: string[]
}

export function fillParams(tool: FillableTool, given: Params, request: string): Filled {
  const { inputSchema } = tool
  const properties = propertiesOf(inputSchema)
  const sentence = withoutExcluded(request)
  const { values: named, rest } = takeNamed(properties, given, sentence)
  const params: Params = { ...named, ...given }
  const matched = matchRest(tool, params, rest)
  return { params: { ...named, ...matched, ...given }, matched: Object.keys(matched) }
}

/** Only what the sentence names with the parameter's own name; undefined if that is not all that is required. */
export function fillNamed(schema: Schema, given: Params, request: string): Params | undefined {
  const { values } = takeNamed(propertiesOf(schema), given, withoutExcluded(request))
  const params = { ...values, ...given }
  return requiredOf(schema).every((name) => params[name] !== undefined) ? params : undefined
}

function matchRest({ inputSchema, ...tool }: FillableTool, known: Params, sentence: string): Params {
  const used = new Set(Object.values(known).map(String))
  const own = `${tool.server ?? ''} ${tool.name}`.toLowerCase()
  // "The context7 library" names the server, not a value.
  const literals = literalsIn(sentence).filter(
    ({ kind, text }) => !used.has(text) && !(kind === 'id' && own.includes(text.toLowerCase()))
  )
  const all = [...literals]
  const places = placesOf(inputSchema, propertiesOf(inputSchema), known)
  const found: Params = {}
  const open = () => places.filter(({ name }) => found[name] === undefined)
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
  return places.some(({ name, isRequired }) => isRequired && names[name] !== undefined)
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

/** `name=value`, `name: value`, `name "value"`, with the parameter's own name. The rest is the sentence without them. */
function takeNamed(
  properties: Record<string, Schema>,
  given: Params,
  sentence: string
): { values: Params; rest: string } {
  const values: Params = {}
  let rest = sentence
  for (const [name, property] of Object.entries(properties)) {
    if (given[name] !== undefined) continue
    const word = name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
    const match = new RegExp(
      `(?<![\\w-])${word}(?:\\s*[=:]\\s*|\\s+(?=["'“]))(?:"([^"]*)"|'([^']*)'|“([^”]*)”|([^\\s,;]+))`,
      'i'
    ).exec(sentence)
    if (!match) continue
    const value = convert(property, match[1] ?? match[2] ?? match[3] ?? match[4]?.replace(/[.!?]$/, '') ?? '')
    if (value === undefined) continue
    values[name] = value
    const { index, 0: text } = match
    rest = rest.slice(0, index) + TAKEN.repeat(text.length) + rest.slice(index + text.length)
  }
  return { values, rest }
}

function convert(property: Schema, text: string): unknown {
  const types = typesOf(property)
  if (Array.isArray(property.enum)) return property.enum.find((choice) => String(choice) === text)
  if (types.includes('boolean') && /^(?:true|false)$/.test(text)) return text === 'true'
  if (types.includes('string') || types.length === 0) return text
  if (types.includes('number') || types.includes('integer')) {
    const number = Number(text)
    const fits = text.trim() !== '' && Number.isFinite(number) && (types.includes('number') || Number.isInteger(number))
    return fits ? number : undefined
  }
  return undefined
}
