/** Which answers fit the form of a question. Without schemas, because the page checks answers too and does not load zod for it. */
import type { AnswerContent, QuestionField } from './questions.ts'

/** The first reason why the values do not fit the form; undefined if they fit. */
export function answerProblem(fields: readonly QuestionField[], values: AnswerContent): string | undefined {
  const known = new Set(fields.map(({ name }) => name))
  const stray = Object.keys(values).find((name) => !known.has(name))
  if (stray !== undefined) return `There is no field “${stray}”.`
  for (const field of fields) {
    const problem = fieldProblem(field, Object.hasOwn(values, field.name) ? values[field.name] : undefined)
    if (problem) return `“${field.title}” ${problem}`
  }
  return undefined
}

export function fieldProblem(field: QuestionField, value: AnswerContent[string] | undefined): string | undefined {
  if (value === undefined) return field.isRequired ? 'is required.' : undefined
  switch (field.kind) {
    case 'text':
      return typeof value === 'string' ? textProblem(field, value) : 'must be a text.'
    case 'number':
      return numberProblem(field, value)
    case 'boolean':
      return typeof value === 'boolean' ? undefined : 'must be yes or no.'
    case 'choice':
      return field.options.some((each) => each.value === value) ? undefined : 'must be one of the choices.'
    case 'choices': {
      if (!Array.isArray(value) || !value.every((one) => field.options.some((each) => each.value === one)))
        return 'must be some of the choices.'
      if (value.length < (field.minItems ?? 0)) return `needs at least ${field.minItems} choices.`
      return value.length > (field.maxItems ?? Infinity) ? `takes at most ${field.maxItems} choices.` : undefined
    }
  }
}

type FieldOf<K extends QuestionField['kind']> = Extract<QuestionField, { kind: K }>

const FORMATS: Record<NonNullable<FieldOf<'text'>['format']>, { fits(value: string): boolean; words: string }> = {
  email: { fits: (value) => /^[^\s@]+@[^\s@]+$/.test(value), words: 'must be an email address.' },
  uri: { fits: (value) => URL.canParse(value), words: 'must be an address like https://example.com.' },
  date: {
    fits: (value) => /^\d{4}-\d\d-\d\d$/.test(value) && !Number.isNaN(Date.parse(value)),
    words: 'must be a date like 2026-01-31.'
  },
  'date-time': { fits: (value) => !Number.isNaN(Date.parse(value)), words: 'must be a date with a time.' }
}

function textProblem(
  { isRequired, format, minLength = 0, maxLength }: FieldOf<'text'>,
  value: string
): string | undefined {
  if (isRequired && value === '') return 'is required.'
  const { length } = [...value]
  if (length < minLength) return `needs at least ${minLength} characters.`
  if (maxLength !== undefined && length > maxLength) return `takes at most ${maxLength} characters.`
  return format && !FORMATS[format].fits(value) ? FORMATS[format].words : undefined
}

function numberProblem({ isInteger, minimum, maximum }: FieldOf<'number'>, value: unknown): string | undefined {
  if (typeof value !== 'number' || !Number.isFinite(value)) return 'must be a number.'
  if (isInteger && !Number.isInteger(value)) return 'must be a whole number.'
  if (minimum !== undefined && value < minimum) return `must be ${minimum} or more.`
  return maximum !== undefined && value > maximum ? `must be ${maximum} or less.` : undefined
}
