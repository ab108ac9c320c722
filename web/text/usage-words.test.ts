import { describe, expect, it } from 'vitest'
import { costWords, money, tokenWords } from './usage-words.ts'

describe('usage in words', () => {
  it.each([
    [0, '$0.00'],
    [0.00042, '$0.00042'],
    [0.0419, '$0.042'],
    [1.234, '$1.23'],
    [1234.5, '$1,234.50']
  ])('%d is %s', (amount, words) => {
    expect(money(amount, 'USD')).toBe(words)
  })

  it('says the share of cached tokens, and the cost only if there are prices', () => {
    const usage = { inputTokens: 1200, cachedTokens: 900, outputTokens: 34 }
    expect(tokenWords(usage)).toBe('1,200 tokens in (75 % cached), 34 out')
    expect(costWords(usage)).toBeUndefined()
    expect(costWords({ ...usage, cost: 0.5, currency: 'USD', isPartlyPriced: true })).toBe('at least $0.50')
  })
})
