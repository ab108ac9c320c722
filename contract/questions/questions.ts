/**
 * A question that an MCP server asks a person during a call (elicitation): what its form has. All texts come
 * from the server and are hostile.
 */
import { z } from 'zod'

export const MAX_QUESTION_CHARS = 10_000
const MAX_FIELDS = 30
const MAX_OPTIONS = 200
const MAX_TEXT = 1000
const MAX_ANSWER_CHARS = 20_000

const option = z.object({ value: z.string().max(MAX_TEXT), title: z.string().max(MAX_TEXT) })
const options = z.array(option).min(1).max(MAX_OPTIONS)
const size = z.number().int().min(0).optional()
const about = {
  name: z.string().min(1).max(200),
  title: z.string().max(MAX_TEXT),
  description: z.string().max(MAX_TEXT).optional(),
  isRequired: z.boolean()
}

export const questionField = z.discriminatedUnion('kind', [
  z.object({
    ...about,
    kind: z.literal('text'),
    format: z.enum(['email', 'uri', 'date', 'date-time']).optional(),
    minLength: size,
    maxLength: size,
    default: z.string().max(MAX_TEXT).optional()
  }),
  z.object({
    ...about,
    kind: z.literal('number'),
    isInteger: z.boolean(),
    minimum: z.number().optional(),
    maximum: z.number().optional(),
    default: z.number().optional()
  }),
  z.object({ ...about, kind: z.literal('boolean'), default: z.boolean().optional() }),
  z.object({ ...about, kind: z.literal('choice'), options, default: z.string().max(MAX_TEXT).optional() }),
  z.object({
    ...about,
    kind: z.literal('choices'),
    options,
    minItems: size,
    maxItems: size,
    default: z.array(z.string().max(MAX_TEXT)).max(MAX_OPTIONS).optional()
  })
])

export type QuestionField = z.infer<typeof questionField>

/** A form with fields, or an address that the person opens. */
export interface Question {
  message: string
  fields?: QuestionField[] | undefined
  url?: string | undefined
}

export const ANSWER_ACTIONS = ['accept', 'decline', 'cancel'] as const
export type AnswerAction = (typeof ANSWER_ACTIONS)[number]

export const answerContent = z.record(
  z.string().max(200),
  z.union([
    z.string().max(MAX_ANSWER_CHARS),
    z.number(),
    z.boolean(),
    z.array(z.string().max(MAX_TEXT)).max(MAX_OPTIONS)
  ])
)
export type AnswerContent = z.infer<typeof answerContent>

/** Reads the parameters of `elicitation/create`. Returns a sentence if they are not a question that a person can be shown. */
export function readQuestion(params: Record<string, unknown>): Question | string {
  const { message, mode = 'form', url, requestedSchema } = params
  if (typeof message !== 'string') return 'A question needs a "message".'
  const shown = message.slice(0, MAX_QUESTION_CHARS).toWellFormed()
  if (mode === 'url') {
    const address = typeof url === 'string' && url.length <= 2000 ? URL.parse(url) : null
    if (!address || !/^https?:$/.test(address.protocol)) return 'The "url" of a question must be an http(s) address.'
    if (address.username !== '' || address.password !== '') return 'The "url" of a question must not name a user.'
    return { message: shown, url: address.href }
  }
  if (mode !== 'form') return 'The "mode" of a question is "form" or "url".'
  const fields = readFields(requestedSchema)
  return typeof fields === 'string' ? fields : { message: shown, fields }
}

function readFields(schema: unknown): QuestionField[] | string {
  const { properties, required } = recordOf(schema)
  const entries = Object.entries(recordOf(properties))
  if (entries.length > MAX_FIELDS) return `A question has at most ${MAX_FIELDS} fields.`
  const needed = new Set(Array.isArray(required) ? required : [])
  const fields: QuestionField[] = []
  for (const [name, property] of entries) {
    const field = readField(name, property, needed.has(name))
    if (!field) return `The field "${name.slice(0, 100)}" is of a kind that a question can't have.`
    fields.push(field)
  }
  return fields
}

/** A property of a JSON schema as a field of a form; undefined if a form can't have it. */
export function readField(name: string, schema: unknown, isRequired: boolean): QuestionField | undefined {
  return questionField.safeParse(fieldOf(name, recordOf(schema), isRequired)).data
}

function fieldOf(name: string, schema: Record<string, unknown>, isRequired: boolean): unknown {
  const { type, title, description, default: initial } = schema
  const base = {
    name,
    title: typeof title === 'string' && title !== '' ? title.slice(0, MAX_TEXT) : name,
    ...(typeof description === 'string' ? { description: description.slice(0, MAX_TEXT) } : {}),
    isRequired,
    ...(initial === undefined || initial === null ? {} : { default: initial })
  }
  if (type === 'boolean') return { ...base, kind: 'boolean' }
  if (type === 'number' || type === 'integer')
    return { ...base, kind: 'number', isInteger: type === 'integer', ...defined(schema, 'minimum', 'maximum') }
  if (type === 'array')
    return {
      ...base,
      kind: 'choices',
      options: optionsOf(recordOf(schema.items)),
      ...defined(schema, 'minItems', 'maxItems')
    }
  if (type !== 'string' && type !== undefined) return undefined
  const options = optionsOf(schema)
  if (options) return { ...base, kind: 'choice', options }
  if (type === undefined) return undefined
  const format = ['email', 'uri', 'date', 'date-time'].find((known) => known === schema.format)
  return { ...base, kind: 'text', ...(format && { format }), ...defined(schema, 'minLength', 'maxLength') }
}

/** Both the newer form (`oneOf` with `const`) and the older one (`enum` with `enumNames`). */
function optionsOf(schema: Record<string, unknown>): { value: unknown; title: unknown }[] | undefined {
  const listed = schema.oneOf ?? schema.anyOf
  if (Array.isArray(listed))
    return listed.map((each) => {
      const { const: value, title = value } = recordOf(each)
      return { value, title }
    })
  if (!Array.isArray(schema.enum)) return undefined
  const names = Array.isArray(schema.enumNames) ? schema.enumNames : []
  return schema.enum.map((value, at) => ({ value, title: names[at] ?? value }))
}

function defined(schema: Record<string, unknown>, ...names: string[]): Record<string, unknown> {
  return Object.fromEntries(names.flatMap((name) => (typeof schema[name] === 'number' ? [[name, schema[name]]] : [])))
}

function recordOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
}
