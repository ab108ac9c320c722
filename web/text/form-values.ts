import type { AnswerContent, QuestionField } from '../../contract/questions/questions.ts'

/** The input of a form's fields: a text for most, a list for several choices. */
export type FieldInput = string | boolean | string[]
export type FormInput = Record<string, FieldInput>

export function emptyInput(fields: readonly QuestionField[]): FormInput {
  return Object.fromEntries(
    fields.map((field) => {
      if (field.kind === 'boolean') return [field.name, field.default ?? false]
      if (field.kind === 'choices') return [field.name, field.default ?? []]
      return [field.name, field.default === undefined ? '' : String(field.default)]
    })
  )
}

/** Converts the input to the values of an answer. Empty fields are left out. */
export function valuesOf(fields: readonly QuestionField[], input: FormInput): AnswerContent {
  return Object.fromEntries(
    fields.flatMap((field): [string, AnswerContent[string]][] => {
      const value = input[field.name]
      if (value === undefined || value === '') return []
      if (field.kind === 'number') return [[field.name, Number(value)]]
      if (field.kind === 'choices' && Array.isArray(value) && value.length === 0 && !field.isRequired) return []
      return [[field.name, value]]
    })
  )
}
