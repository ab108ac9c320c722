/**
 * Takes the values that a sentence gives with the parameter's own name: `name=value`, `name: value`, `name "value"`. Invariant: a
 * value is taken only if its end is certain. It is in quotation marks, or nothing follows that may belong to it.
 */
import { STOP_WORDS } from '../../routing/words/stop-words.ts'
import { typesOf } from './check-params.ts'
import { isGiven, type Schema } from './fit-literals.ts'
import { numberOf } from './whole-values.ts'
import { escaped, TAKEN } from './word-values.ts'

interface NamedValues {
  values: Record<string, unknown>
  /** Parameters that the sentence names, and whose values have no certain end. */
  unclear: string[]
  /** The sentence without all of them, as long as before. */
  rest: string
}

interface Said {
  text: string
  end: number
  isCertain: boolean
}

const CLOSING: Record<string, string> = { '"': '"', "'": "'", '“': '”' }
/** Matches what may stand between a value and the next one, or the end. */
const SEPARATES = /^[\s,;.!?)\]…]*(?:\b(?:and|with|plus|also|the|please|thanks|now)\b[\s,;.!?]*)*$/i

export function takeNamed(
  properties: Record<string, Schema>,
  given: Record<string, unknown>,
  sentence: string
): NamedValues {
  const values: Record<string, unknown> = {}
  const unclear: string[] = []
  let rest = sentence
  const places = placesOf(properties, given, sentence)
  for (const place of places) {
    const { name, start, said, isRepeated } = place
    const overlaps = places.some((other) => other !== place && other.start < said.end && start < other.said.end)
    const isCertain = said.isCertain && !isRepeated && !overlaps
    const value = isCertain ? convert(properties[name] ?? {}, said.text) : undefined
    if (value === undefined) unclear.push(name)
    else values[name] = value
    rest = rest.slice(0, start) + TAKEN.repeat(said.end - start) + rest.slice(said.end)
  }
  return { values, unclear, rest }
}

interface NamedPlace {
  name: string
  start: number
  said: Said
  isRepeated: boolean
}

/** Where the sentence names parameters. A name inside another's value overlaps it; then nobody knows which of the two is meant. */
function placesOf(properties: Record<string, Schema>, given: Record<string, unknown>, sentence: string): NamedPlace[] {
  const isAName = `(?:${Object.keys(properties).map(escaped).join('|')})(?:\\s*[=:]|\\s+["'“])`
  return Object.entries(properties).flatMap(([name, property]) => {
    if (isGiven(given, name)) return []
    const pattern = new RegExp(`(?<![^\\s(\\[,;])${escaped(name)}(?:\\s*[=:]\\s*|\\s+(?=["'“]))(?=\\S)`, 'gi')
    const [only, second] = [...sentence.matchAll(pattern)]
    if (!only) return []
    const from = only.index + only[0].length
    const said = quoted(sentence, from) ?? unquoted(sentence, from, property, isAName)
    return [{ name, start: only.index, said, isRepeated: second !== undefined }]
  })
}

function quoted(sentence: string, start: number): Said | undefined {
  const closing = CLOSING[sentence[start] ?? '']
  if (closing === undefined) return undefined
  const end = sentence.indexOf(closing, start + 1)
  if (end < 0) return { text: '', end: sentence.length, isCertain: false }
  const isCertain = /^[)\].,;:!?…]*(?:\s|$)|^[,;]\w/.test(sentence.slice(end + 1))
  return { text: sentence.slice(start + 1, end), end: end + 1, isCertain }
}

/** The token; a comma before the next name ends it too. A text may go on after a space, so only the next value may follow it. */
function unquoted(sentence: string, start: number, property: Schema, isAName: string): Said {
  const token = /^\S+/.exec(sentence.slice(start))?.[0] ?? ''
  const cut = token.split(new RegExp(`[,;](?=${isAName})`, 'i'))[0] ?? ''
  const text = trimmed(cut)
  const end = start + text.length
  const after = sentence.slice(end)
  const next = new RegExp(`(?<=[\\s,;(])${isAName}|\\s["'“\`]`, 'i').exec(after)
  const between = next ? after.slice(0, next.index) : after
  const types = typesOf(property)
  const isText = (types.length === 0 || types.includes('string')) && !Array.isArray(property.enum)
  const ends = isText ? SEPARATES.test(between) && /^[,;]*$/.test(cut.slice(text.length)) : endsHere(between)
  return { text, end, isCertain: ends && !/["“”`]/.test(text) }
}

/** A number, a switch or a choice ends with its token, unless a word or a sign goes on with it: "5 million", "5 €". */
function endsHere(after: string): boolean {
  const word = /^\s+(\S+)/.exec(after)?.[1]
  return word === undefined || STOP_WORDS.has(word.toLowerCase().replace(/[.,;:!?]+$/, ''))
}

/** Without punctuation at the end; a bracket stays if the value itself opens it. */
function trimmed(token: string): string {
  const text = token.replace(/[.,;:!?…]+$/, '')
  for (const [open, close] of ['()', '[]']) {
    if (open && close && text.endsWith(close) && !text.includes(open)) return trimmed(text.slice(0, -1))
  }
  return text
}

function convert(property: Schema, text: string): unknown {
  const types = typesOf(property)
  if (Array.isArray(property.enum))
    return property.enum.find((choice) => typeof choice !== 'object' && String(choice) === text)
  if (types.includes('boolean') && /^(?:true|false)$/.test(text)) return text === 'true'
  if (types.includes('string') || types.length === 0) return text
  const number = types.includes('number') || types.includes('integer') ? numberOf(text) : undefined
  return number !== undefined && (types.includes('number') || Number.isInteger(number)) ? number : undefined
}
