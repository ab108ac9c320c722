import { type QuestionField, readField } from '../../contract/questions/questions.ts'
import { type FormInput, valuesOf } from './form-values.ts'
import { jsonFault } from './json-fault.ts'

/** A parameter of a tool: a field of a form, or JSON if it is more than that. */
export type ToolParameter =
  | { name: string; isRequired: boolean; field: QuestionField }
  | { name: string; isRequired: boolean; field: null }

const MAX_PARAMETERS = 60

/** The parameters in a tool's JSON schema, which is hostile. */
export function toolParameters(schema: Record<string, unknown>): ToolParameter[] {
  const { properties, required } = schema
  const needed = new Set(Array.isArray(required) ? required : [])
  const entries = typeof properties === 'object' && properties !== null ? Object.entries(properties) : []
  return entries.slice(0, MAX_PARAMETERS).map(([name, property]) => {
    const isRequired = needed.has(name)
    const field = readField(name, property, isRequired)
    return field ? { name, isRequired, field: { ...field, title: name } } : { name, isRequired, field: null }
  })
}

/** The arguments of the form; a sentence if one is missing or not valid JSON. A box that nobody ticked is left out. */
export function toolArguments(
  parameters: readonly ToolParameter[],
  input: FormInput
): Record<string, unknown> | string {
  const fields = parameters.flatMap(({ field }) => field ?? [])
  const args: Record<string, unknown> = valuesOf(fields, input)
  for (const { name, field, isRequired } of parameters) {
    if (field?.kind === 'boolean' && !isRequired && args[name] === (field.default ?? false)) delete args[name]
    const text = input[name]
    if (field || typeof text !== 'string' || text.trim() === '') continue
    const fault = jsonFault(text)
    if (fault !== null) return `“${name}” is not valid JSON: ${fault}.`
    args[name] = JSON.parse(text)
  }
  const missing = parameters.find(({ name, isRequired }) => isRequired && !Object.hasOwn(args, name))
  return missing ? `“${missing.name}” is required.` : args
}
