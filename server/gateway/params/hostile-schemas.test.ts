/** Schemas and values as a hostile server may send them: every search weighs them, whoever asks for what. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cpuMs } from '../../../tests/support/cpu-ms.ts'
import { literalsIn } from '../../routing/words/literals.ts'
import { checkParams, unknownNames } from './check-params.ts'
import { fillParams } from './fill-params.ts'
import { unusedValues } from './unused-values.ts'

const REQUESTS = [
  'read "notes.txt" in "/tmp/x" with mode: fast and constructor=5, toString "7"',
  'the __proto__: x, items [object Object], page 2, from main to dev, as png',
  'search for the "usual" in a: b; 1280x720 https://example.org/a?b=c me@example.org 2026-01-01'
]
const NAMES = [
  ...['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf', 'items', 'mode', 'the', 'in', 'a', ''],
  ...['(?<x', '[', '\\', '$&', 'page', 'from', 'to', 'x'.repeat(300), '\u0000', '\ud800', 'name name name']
]
const KEYWORDS = [
  ...['type', 'properties', 'required', 'items', 'enum', 'const', 'anyOf', 'oneOf', 'format', 'description'],
  ...['minimum', 'maxLength', 'minLength', 'additionalProperties', 'patternProperties', '$ref', '$defs', 'default']
]
const leaf = fc.oneof(
  fc.constantFrom<unknown>('string', 'number', 'integer', 'boolean', 'object', 'array', 'null', '#', '#/$defs/a'),
  fc.constantFrom<unknown>(null, true, false, 0, -1, 1e308, 'png', 'fast', 'x'.repeat(2000)),
  fc.constantFrom(...NAMES)
)
const { value: anything } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    leaf,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.array(fc.tuple(fc.constantFrom(...NAMES, ...KEYWORDS), tie('value')), { maxLength: 6 }).map(asJson),
    fc.array(fc.tuple(fc.constantFrom(...KEYWORDS), tie('value')), { maxLength: 6 }).map(asJson)
  )
}))

/** Like JSON.parse, which makes `__proto__` an own property. */
function asJson(entries: [string, unknown][]): unknown {
  return JSON.parse(`{${entries.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join()}}`)
}

function use(inputSchema: Record<string, unknown>, given: Record<string, unknown>, request: string): unknown {
  const tool = { server: 's', name: 'read_the_notes', description: 'Reads the notes.', inputSchema }
  const { params } = fillParams(tool, given, request)
  const problems = checkParams(inputSchema, params)
  unknownNames(inputSchema, params)
  unusedValues({ request, server: 's', tool, params })
  return problems
}

describe('a hostile schema', () => {
  // Checked: with String() around each choice, a choice with a toString of its own throws, and every search fails.
  it('makes nothing throw, and changes no prototype', () => {
    const before = Object.getOwnPropertyNames(Object.prototype)
    const schemas = fc.array(fc.tuple(fc.constantFrom(...NAMES), anything), { maxLength: 6 }).map(asJson)
    fc.assert(
      fc.property(schemas, anything, fc.constantFrom(...REQUESTS), (properties, more, request) => {
        const schema = { ...(typeof more === 'object' ? more : {}), type: 'object', properties }
        const given = asJson([['mode', more]])
        use(schema, {}, request)
        use(schema, given as Record<string, unknown>, request)
      }),
      { numRuns: 500 }
    )
    use({ properties: { mode: { enum: [{ toString: 1, valueOf: 1 }, 'fast'] } } }, {}, REQUESTS[0] ?? '')
    expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(before)
  })

  // Checked: if all parameters are looked at, 8000 of them take many seconds, in which nobody is served.
  it.each([
    ['thousands of parameters', many(8000, (at) => [`name ${at}`, { type: 'string', description: 'the '.repeat(2) }])],
    ['thousands of lists', many(2500, (at) => [`p${at}`, { type: 'array', items: { type: 'string' } }])],
    [
      'thousands of choices',
      { properties: { mode: { enum: Array.from({ length: 12_000 }, (_, at) => `the ${at % 7}`) } } }
    ],
    ['one endless choice', { properties: { mode: { enum: ['the '.repeat(24_000)] } } }],
    ['one endless name', { properties: { ['a '.repeat(49_000)]: { type: 'string' } } }],
    ['thousands of required names', { required: Array.from({ length: 12_000 }, (_, at) => `r${at}`) }],
    ['thousands of types', { type: Array.from({ length: 12_000 }, (_, at) => `type${at}`) }]
  ])('with %s does not stop the process', async (_, schema) => {
    const request = REQUESTS.join(' and ').repeat(8)
    let problems: unknown
    const spent = await cpuMs(() => {
      problems = use(schema, {}, request)
    })
    expect(spent).toBeLessThan(3000)
    expect(JSON.stringify(problems).length).toBeLessThan(20_000)
  })

  it('with many choices is compared with a long value once', async () => {
    const schema = { properties: { text: { enum: Array.from({ length: 12_000 }, (_, at) => at) } } }
    expect(await cpuMs(() => checkParams(schema, { text: 'x'.repeat(1_000_000) }))).toBeLessThan(3000)
  })
})

// Checked: if a path may begin inside another one, or a quotation is searched from each of its signs, one takes seconds to minutes.
it.each(['\u0301', '\u201c', '\u00ab', 'a-', 'a.a', '-1.1', 'a@a.', 'a/', '"\u201c'])(
  'values are found in a sentence of any form without stopping the process: %j',
  async (piece) => {
    expect(await cpuMs(() => literalsIn(piece.repeat(60_000 / piece.length)))).toBeLessThan(3000)
  }
)

function many(count: number, entry: (at: number) => [string, unknown]): Record<string, unknown> {
  return { properties: Object.fromEntries(Array.from({ length: count }, (_, at) => entry(at))) }
}
