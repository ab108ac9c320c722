/** The prices and context sizes of models, from a file that the operator writes. We ship no prices: they change every month. */
import { z } from 'zod'
import { AppError, messageOf } from '../lib/errors.ts'
import type { Cost, TokenUsage } from './port.ts'

const MILLION = 1_000_000
const MAX_MODELS = 10_000

const price = z.number().nonnegative().max(1_000_000)
const entry = z.strictObject({
  /** Per million tokens. Without `cached` and `cacheWrite`, those tokens cost as much as other input. */
  input: price.optional(),
  output: price.optional(),
  cached: price.optional(),
  cacheWrite: price.optional(),
  contextTokens: z.number().int().positive().max(1_000_000_000).optional()
})
const table = z.strictObject({
  currency: z
    .string()
    .regex(/^[A-Z]{3}$/, 'three capital letters, like USD')
    .default('USD'),
  models: z
    .record(z.string().regex(/^[^*]+\*?$/, 'a model as provider/id, with a "*" only at the end'), entry)
    .refine((models) => Object.keys(models).length <= MAX_MODELS, `at most ${MAX_MODELS} models`)
})
type Entry = z.infer<typeof entry>

export interface PriceTable {
  /** Undefined if the table has no price for the model. */
  costOf(model: string, usage: TokenUsage): Cost | undefined
  contextTokens(model: string): number | undefined
}

export function readPrices(text: string): PriceTable {
  const { currency, models } = parse(text)
  // The longest name is the most specific one.
  const entries = Object.entries(models).sort(([a], [b]) => b.length - a.length)
  const entryOf = (model: string): Entry | undefined =>
    entries.find(([name]) => name === model)?.[1] ??
    entries.find(([name]) => name.endsWith('*') && model.startsWith(name.slice(0, -1)))?.[1]
  return {
    contextTokens: (model) => entryOf(model)?.contextTokens,
    costOf(model, { inputTokens, cachedTokens = 0, writtenTokens = 0, outputTokens }) {
      const { input, output, cached = input, cacheWrite = input } = entryOf(model) ?? {}
      if (input === undefined || output === undefined) return undefined
      const plain = Math.max(0, inputTokens - cachedTokens - writtenTokens)
      const sum =
        plain * input + cachedTokens * (cached ?? 0) + writtenTokens * (cacheWrite ?? 0) + outputTokens * output
      return { cost: sum / MILLION, currency }
    }
  }
}

function parse(text: string): z.infer<typeof table> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw invalid(`the file is not valid JSON (${messageOf(error)})`)
  }
  const { data, error } = table.safeParse(value)
  if (data) return data
  const [issue] = error.issues
  const nested = issue?.code === 'invalid_key' ? issue.issues[0]?.message : issue?.message
  throw invalid(`${issue?.path.join('.') || 'the file'}: ${nested}`)
}

function invalid(reason: string): AppError {
  return new AppError('invalid', 'invalid_setting', `MODEL_PRICES: ${reason}.`)
}
