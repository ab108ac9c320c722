/** Writes a tool as a TypeScript signature, which costs a model a fraction of the tokens of its JSON Schema. */
import type { StoredTool } from '../catalog/stored-tools.ts'
import { isRecord } from '../lib/is-record.ts'

type Schema = Record<string, unknown>
type SignedTool = Pick<StoredTool, 'name' | 'inputSchema'> & {
  description?: string | undefined
  outputSchema?: Schema | undefined
}

const MAX_DEPTH = 5
const MAX_CHARS = 4000
const MAX_PROPERTIES = 60
const MAX_CHOICES = 30
/** Parts of one schema that are looked at: a list of types looks at the same properties again and again. */
const MAX_PARTS = 2000
const NOTE_CHARS = 120
interface Left {
  parts: number
}

const NAMES = new Map<unknown, string>([
  ['string', 'string'],
  ['number', 'number'],
  ['integer', 'number'],
  ['boolean', 'boolean'],
  ['null', 'null']
])

/** One line about the tool, and how to call it in a program. */
export function typeSignature(server: string, tool: SignedTool): string {
  const left = { parts: MAX_PARTS }
  const args = typeOf(tool.inputSchema, 0, left)
  const needsArgs = Array.isArray(tool.inputSchema.required) && tool.inputSchema.required.length > 0
  const result = tool.outputSchema ? typeOf(tool.outputSchema, 0, left) : 'string'
  const call = `tools${member(server)}${member(tool.name)}`
  const text = `// ${oneLine(tool.description ?? '')}\n${call}(args${needsArgs ? '' : '?'}: ${args}): Promise<${result}>`
  return text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS)} …cut: see explain_tool for the rest` : text
}

function member(name: string): string {
  return isPlain(name) ? `.${name}` : `[${JSON.stringify(name)}]`
}

function isPlain(name: string): boolean {
  return /^[A-Za-z_$][\w$]*$/.test(name)
}

function typeOf(schema: unknown, depth: number, left: Left, type = isRecord(schema) ? schema.type : undefined): string {
  if (!isRecord(schema) || depth > MAX_DEPTH || left.parts-- <= 0) return 'unknown'
  if (schema.const !== undefined) return JSON.stringify(schema.const) ?? 'unknown'
  if (Array.isArray(schema.enum)) return choices(schema.enum.map((choice) => JSON.stringify(choice) ?? 'unknown'))
  for (const key of ['anyOf', 'oneOf']) {
    const options = schema[key]
    if (Array.isArray(options)) return choices(some(options).map((option) => typeOf(option, depth + 1, left)))
  }
  if (Array.isArray(type))
    return choices(some(type).map((each) => typeOf(schema, depth, left, Array.isArray(each) ? 'unknown' : each)))
  if (type === 'array') return `${grouped(typeOf(schema.items, depth + 1, left))}[]`
  if (type === 'object' || isRecord(schema.properties)) return objectType(schema, depth, left)
  return NAMES.get(type) ?? 'unknown'
}

/** One more than is shown, so that the rest is not forgotten. */
function some(list: unknown[]): unknown[] {
  return [...new Set(list)].slice(0, MAX_CHOICES + 1)
}

function objectType(schema: Schema, depth: number, left: Left): string {
  const properties = Object.entries(isRecord(schema.properties) ? schema.properties : {})
  const required = new Set<unknown>(Array.isArray(schema.required) ? schema.required : [])
  if (properties.length === 0) return schema.additionalProperties === false ? '{}' : 'Record<string, unknown>'
  const fields = properties.slice(0, MAX_PROPERTIES).map(([name, property]) => {
    const key = isPlain(name) ? name : JSON.stringify(name)
    const text = isRecord(property) && typeof property.description === 'string' ? oneLine(property.description) : ''
    return `${text && depth === 0 ? `/* ${text} */ ` : ''}${key}${required.has(name) ? '' : '?'}: ${typeOf(property, depth + 1, left)}`
  })
  const more = properties.length > MAX_PROPERTIES ? ['/* more */'] : []
  return `{ ${[...fields, ...more].join('; ')} }`
}

function choices(types: string[]): string {
  const unique = [...new Set(types)]
  const shown = unique.slice(0, MAX_CHOICES).join(' | ')
  return unique.length > MAX_CHOICES ? `${shown} | unknown` : shown || 'unknown'
}

function grouped(type: string): string {
  return type.includes(' | ') ? `(${type})` : type
}

/** Hostile text: it must not end the comment that it stands in. */
function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').replaceAll('*/', '* /').trim().slice(0, NOTE_CHARS)
}
