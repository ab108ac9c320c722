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
const NOTE_CHARS = 120
const NAMES: Record<string, string> = {
  string: 'string',
  number: 'number',
  integer: 'number',
  boolean: 'boolean',
  null: 'null'
}

/** One line about the tool, and how to call it in a program. */
export function typeSignature(server: string, tool: SignedTool): string {
  const args = typeOf(tool.inputSchema, 0)
  const needsArgs = Array.isArray(tool.inputSchema.required) && tool.inputSchema.required.length > 0
  const result = tool.outputSchema ? typeOf(tool.outputSchema, 0) : 'string'
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

function typeOf(schema: unknown, depth: number): string {
  if (!isRecord(schema) || depth > MAX_DEPTH) return 'unknown'
  if (schema.const !== undefined) return JSON.stringify(schema.const) ?? 'unknown'
  if (Array.isArray(schema.enum)) return choices(schema.enum.map((choice) => JSON.stringify(choice) ?? 'unknown'))
  for (const key of ['anyOf', 'oneOf']) {
    const options = schema[key]
    if (Array.isArray(options)) return choices(options.map((option) => typeOf(option, depth + 1)))
  }
  if (Array.isArray(schema.type)) return choices(schema.type.map((type) => typeOf({ ...schema, type }, depth)))
  if (schema.type === 'array') return `${grouped(typeOf(schema.items, depth + 1))}[]`
  if (schema.type === 'object' || isRecord(schema.properties)) return objectType(schema, depth)
  return NAMES[String(schema.type)] ?? 'unknown'
}

function objectType(schema: Schema, depth: number): string {
  const properties = Object.entries(isRecord(schema.properties) ? schema.properties : {})
  const required = new Set<unknown>(Array.isArray(schema.required) ? schema.required : [])
  if (properties.length === 0) return schema.additionalProperties === false ? '{}' : 'Record<string, unknown>'
  const fields = properties.slice(0, MAX_PROPERTIES).map(([name, property]) => {
    const key = isPlain(name) ? name : JSON.stringify(name)
    const text = isRecord(property) && typeof property.description === 'string' ? oneLine(property.description) : ''
    return `${text && depth === 0 ? `/* ${text} */ ` : ''}${key}${required.has(name) ? '' : '?'}: ${typeOf(property, depth + 1)}`
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
