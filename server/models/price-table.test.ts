import { afterEach, describe, expect, it, test } from 'vitest'
import { type Connected, collect, connect, WIRES, type Wire } from '../../tests/fixtures/model-servers/wires.ts'
import { readPrices } from './price-table.ts'

let connected: Connected | undefined
afterEach(() => connected?.server.close())

const file = (models: object, more: object = {}) => JSON.stringify({ models, ...more })

describe('the price table', () => {
  it('takes the most specific entry, and counts cached tokens at their own price', () => {
    const prices = readPrices(
      file({ 'openai/*': { input: 100, output: 100 }, 'openai/gpt-5': { input: 2, cached: 0.5, output: 10 } })
    )
    const usage = { inputTokens: 1_000_000, cachedTokens: 400_000, outputTokens: 100_000 }
    expect(prices.costOf('openai/gpt-5', usage)).toEqual({ cost: 1.2 + 0.2 + 1, currency: 'USD' })
    expect(prices.costOf('openai/gpt-5-mini', usage)).toEqual({ cost: 110, currency: 'USD' })
    expect(prices.costOf('gemini/x', usage)).toBeUndefined()
  })

  it('counts tokens without a price of their own as input, and knows an entry with a limit only', () => {
    const prices = readPrices(
      file({ 'a/b': { input: 1, cacheWrite: 1.25, output: 2 }, 'a/c': { contextTokens: 8192 } }, { currency: 'EUR' })
    )
    const usage = { inputTokens: 3_000_000, cachedTokens: 1_000_000, writtenTokens: 1_000_000, outputTokens: 0 }
    expect(prices.costOf('a/b', usage)).toEqual({ cost: 3.25, currency: 'EUR' })
    expect(prices.costOf('a/c', usage)).toBeUndefined()
    expect(prices.contextTokens('a/c')).toBe(8192)
  })

  it.each([
    ['no JSON', '{', /not valid JSON/],
    ['a negative price', file({ 'a/b': { input: -1, output: 1 } }), /models\.a\/b\.input/],
    ['a star in the middle', file({ 'a/*b': { input: 1, output: 1 } }), /"\*" only at the end/],
    ['a word that nobody reads', file({ 'a/b': { input: 1, output: 1, cache: 1 } }), /cache/]
  ])('rejects %s, and names the setting', (_, text, reason) => {
    expect(() => readPrices(text)).toThrow(/^MODEL_PRICES/)
    expect(() => readPrices(text)).toThrow(reason)
  })
})

describe.each(WIRES)('$name', (wire: Wire) => {
  test('the cost of a step is in its usage, and the limit of the table is in the catalog', async () => {
    const prices = readPrices(file({ [wire.model]: { input: 1, cached: 0.1, output: 10, contextTokens: 5000 } }))
    const usage = { input: 1_000_000, cached: 500_000, output: 100_000 }
    const id = wire.model.slice(wire.model.indexOf('/') + 1)
    const methods = { name: `models/${id}`, supportedGenerationMethods: ['generateContent'] }
    connected = await connect(wire, { models: [{ id, ...methods }], replies: [{ text: 'ok', usage }] }, {}, { prices })
    const { done } = await collect(connected.step('go', { cacheKey: 'session-1' }))
    expect(done?.usage).toMatchObject({ cost: 1.55, currency: 'USD' })
    const { models } = await connected.models.catalog()
    expect(models.find((model) => model.id === wire.model)).toMatchObject({ contextTokens: 5000 })
    // Only OpenAI has a key that sends the requests of a conversation to the same cache.
    const body = JSON.stringify(connected.server.requests[0]?.body)
    expect(body.includes('"prompt_cache_key":"session-1"')).toBe(wire.name === 'openai responses')
  })
})

test('what Claude writes to its cache has a price of its own', async () => {
  const [claude] = WIRES as [Wire]
  const prices = readPrices(file({ 'anthropic/*': { input: 1, cached: 0.1, cacheWrite: 2, output: 0 } }))
  const usage = { input: 3_000_000, cached: 1_000_000, written: 1_000_000, output: 0 }
  connected = await connect(claude, { replies: [{ text: 'ok', usage }] }, {}, { prices })
  const { done } = await collect(connected.step('go'))
  expect(done?.usage).toMatchObject({ inputTokens: 3_000_000, writtenTokens: 1_000_000, cost: 3.1 })
})
