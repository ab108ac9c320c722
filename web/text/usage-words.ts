import type { UsageSum } from '../../contract/usage.ts'

/** Small amounts keep two digits that say something: $0.0042 instead of $0.00. */
export function money(amount: number, currency: string): string {
  const digits = amount > 0 && amount < 0.1 ? { maximumSignificantDigits: 2 } : { maximumFractionDigits: 2 }
  return new Intl.NumberFormat(undefined, { style: 'currency', currency, minimumFractionDigits: 2, ...digits }).format(
    amount
  )
}

/** Undefined if nobody has set prices. */
export function costWords({ cost, currency, isPartlyPriced }: UsageSum): string | undefined {
  if (cost === undefined || currency === undefined) return undefined
  return `${isPartlyPriced ? 'at least ' : ''}${money(cost, currency)}`
}

export function tokenWords({ inputTokens, cachedTokens, outputTokens }: UsageSum): string {
  const share = cachedTokens > 0 ? ` (${Math.round((100 * cachedTokens) / Math.max(1, inputTokens))} % cached)` : ''
  return `${inputTokens.toLocaleString()} tokens in${share}, ${outputTokens.toLocaleString()} out`
}
