/** The part of JSON Schema that tells callers what is missing or wrong. It ignores what it doesn't know: the child checks too. */
import { isRecord } from '../../lib/is-record.ts'

export interface ParamsProblem {
  path: string
  reason: string
  missing: boolean
}

type Schema = Record<string, unknown>
const MAX_DEPTH = 12
const MAX_PROBLEMS = 20
const MAX_SHOWN = 300
/** A sentence fills in no more parameters than these, and none with a longer name: each costs time in every search. */
const MAX_PROPERTIES = 200
const MAX_NAME = 200

export function checkParams(schema: Schema, params: unknown): ParamsProblem[] {
  const problems: ParamsProblem[] = []
  check(schema, params, '', problems, 0)
  return problems
}

function check(schema: Schema, value: unknown, path: string, problems: ParamsProblem[], depth: number): void {
  if (depth > MAX_DEPTH || problems.length >= MAX_PROBLEMS) return
  const wrong = (reason: string) => problems.push({ path: path || 'params', reason, missing: false })
  const types = typesOf(schema)
  if (types.length > 0 && !types.some((type) => isOfType(value, type))) {
    wrong(`must be ${types.slice(0, MAX_PROBLEMS).join(' or ').slice(0, MAX_SHOWN)}`)
    return
  }
  if (Array.isArray(schema.enum) && !schema.enum.some(sameAs(value))) {
    wrong(`must be one of ${JSON.stringify(schema.enum).slice(0, MAX_SHOWN)}`)
  }
  if (schema.const !== undefined && !sameAs(value)(schema.const))
    wrong(`must be ${JSON.stringify(schema.const).slice(0, MAX_SHOWN)}`)
  if (typeof value === 'number') checkNumber(schema, value, wrong)
  if (typeof value === 'string') checkText(schema, value, wrong)
  if (Array.isArray(value) && isRecord(schema.items)) {
    for (const [index, item] of value.entries()) check(schema.items, item, `${path}[${index}]`, problems, depth + 1)
  }
  if (isRecord(value)) checkObject(schema, value, path, problems, depth)
}

function checkObject(schema: Schema, value: Schema, path: string, problems: ParamsProblem[], depth: number): void {
  const at = (name: string) => (path ? `${path}.${name}` : name)
  for (const name of requiredOf(schema)) {
    if (problems.length >= MAX_PROBLEMS) return
    if (!Object.hasOwn(value, name) || value[name] === undefined)
      problems.push({ path: at(name).slice(0, MAX_SHOWN), reason: 'is missing', missing: true })
  }
  const properties = isRecord(schema.properties) ? schema.properties : {}
  for (const [name, item] of Object.entries(value)) {
    if (problems.length >= MAX_PROBLEMS) return
    const own = Object.hasOwn(properties, name) ? properties[name] : undefined
    const known = isRecord(own) ? own : undefined
    if (known !== undefined && item !== undefined) check(known, item, at(name), problems, depth + 1)
    else if (known === undefined && schema.additionalProperties === false && !isRecord(schema.patternProperties)) {
      problems.push({ path: at(name), reason: 'is not a parameter of this tool', missing: false })
    }
  }
}

/** Names in the parameters that the schema does not list, whether or not it allows them. An object without a list may hold any. */
export function unknownNames(schema: Schema, params: Record<string, unknown>, depth = 0): string[] {
  const properties = isRecord(schema.properties) ? schema.properties : {}
  if (depth > MAX_DEPTH || (depth > 0 && Object.keys(properties).length === 0)) return []
  return Object.entries(params).flatMap(([name, value]) => {
    const known = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (known === undefined) return [name]
    const inner = isRecord(known) && isRecord(known.items) ? known.items : known
    if (!isRecord(inner)) return []
    const values = Array.isArray(value) ? value : [value]
    return values.filter(isRecord).flatMap((each) => unknownNames(inner, each, depth + 1))
  })
}

function checkNumber(schema: Schema, value: number, wrong: (reason: string) => void): void {
  if (typeof schema.minimum === 'number' && value < schema.minimum) wrong(`must be at least ${schema.minimum}`)
  if (typeof schema.maximum === 'number' && value > schema.maximum) wrong(`must be at most ${schema.maximum}`)
}

function checkText(schema: Schema, value: string, wrong: (reason: string) => void): void {
  const { minLength, maxLength } = schema
  if (typeof minLength === 'number' && value.length < minLength) wrong(`must have at least ${minLength} characters`)
  if (typeof maxLength === 'number' && value.length > maxLength) wrong(`must have at most ${maxLength} characters`)
}

export function requiredOf(schema: Schema): string[] {
  return Array.isArray(schema.required) ? schema.required.filter((name) => typeof name === 'string') : []
}

export function propertiesOf(schema: Schema): Record<string, Schema> {
  if (!isRecord(schema.properties)) return {}
  const usable = (pair: [string, unknown]): pair is [string, Schema] =>
    isRecord(pair[1]) && pair[0].length <= MAX_NAME && pair[0] !== '__proto__'
  return Object.fromEntries(Object.entries(schema.properties).filter(usable).slice(0, MAX_PROPERTIES))
}

export function typesOf(schema: Schema): string[] {
  const { type } = schema
  return (Array.isArray(type) ? type : [type]).filter((each) => typeof each === 'string')
}

function isOfType(value: unknown, type: string): boolean {
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return isRecord(value)
  if (type === 'null') return value === null
  if (type === 'integer') return Number.isInteger(value)
  if (type === 'number') return typeof value === 'number'
  if (type === 'string') return typeof value === 'string'
  if (type === 'boolean') return typeof value === 'boolean'
  return true
}

/** Only lists and objects are compared as text, which takes time with the length of both. */
function sameAs(value: unknown): (other: unknown) => boolean {
  const text = typeof value === 'object' ? JSON.stringify(value) : undefined
  return (other) =>
    other === value || (text !== undefined && typeof other === 'object' && JSON.stringify(other) === text)
}
