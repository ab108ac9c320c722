import type { EventData } from './events.ts'

/** Tokens and, if someone has set prices, what they cost. `cachedTokens` are part of the input. */
export interface UsageSum {
  inputTokens: number
  outputTokens: number
  cachedTokens: number
  cost?: number | undefined
  currency?: string | undefined
  /** Some steps have no price, so the cost is higher than `cost`. */
  isPartlyPriced?: true | undefined
}

export function noUsage(): UsageSum {
  return { inputTokens: 0, outputTokens: 0, cachedTokens: 0 }
}

export function plusUsage(sum: UsageSum, step: Omit<EventData<'usage'>, 'turnId'>): UsageSum {
  const { inputTokens, outputTokens, cachedTokens = 0, cost, currency } = step
  const isFirst = sum.inputTokens + sum.outputTokens === 0
  const wasPriced = sum.cost !== undefined
  const isMixed = !isFirst && (wasPriced !== (cost !== undefined) || (wasPriced && sum.currency !== currency))
  const total = (sum.cost ?? 0) + (wasPriced && sum.currency !== currency ? 0 : (cost ?? 0))
  return {
    inputTokens: sum.inputTokens + inputTokens,
    outputTokens: sum.outputTokens + outputTokens,
    cachedTokens: sum.cachedTokens + cachedTokens,
    ...((wasPriced || cost !== undefined) && { cost: total, currency: sum.currency ?? currency }),
    ...((isMixed || sum.isPartlyPriced) && { isPartlyPriced: true as const })
  }
}
