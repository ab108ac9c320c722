import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AT_ONCE, createUsageMemory, type UsageEvidence, type UsageMemory } from './usage-memory.ts'

const example = (request: string, tool: string, at = 0) => ({ request, server: 's', tool, at })
const requests = fc.array(
  fc.tuple(
    fc.constantFrom('red apple pie', 'green apple', 'fast car race', 'slow red car', 'pie'),
    fc.constantFrom('a', 'b', 'c')
  ),
  { maxLength: 30 }
)

describe('opinion', () => {
  it('votes for the tool of the most similar request', () => {
    const memory = createUsageMemory(10, AT_ONCE)
    memory.learn(example('book a table for dinner', 'restaurant'), 'restaurant')
    memory.learn(example('what is the weather in Oslo', 'weather'), 'weather')
    const opinion = memory.opinion('weather in Bergen tomorrow')
    expect(opinion?.byTool.get('weather')?.votes).toBe(1)
    expect(opinion?.byTool.has('restaurant')).toBe(false)
    expect(opinion?.nearest).toBeGreaterThan(0)
    expect(opinion?.nearest).toBeLessThan(1)
  })

  it('recognizes a request that it has seen', () => {
    const memory = createUsageMemory(10, AT_ONCE)
    memory.learn(example('what is the weather in Oslo', 'weather'), 'weather')
    expect(memory.opinion('What is the weather in Oslo?')?.nearest).toBeCloseTo(1)
  })

  it('has none about unknown requests, nor without words', () => {
    const memory = createUsageMemory(10, AT_ONCE)
    memory.learn(example('weather in Oslo', 'weather'), 'weather')
    memory.learn(example('', 'nothing'), 'nothing')
    expect(memory.opinion('translate a poem')).toBeUndefined()
    expect(memory.opinion('')).toBeUndefined()
  })
})

/** Sums in another order differ in their last digits. */
function rounded(memory: UsageMemory, request: string) {
  const { byTool = new Map<string, UsageEvidence>(), nearest = 0 } = memory.opinion(request) ?? {}
  const near = (value: number) => Number(value.toFixed(9))
  return { nearest, byTool: [...byTool].map(([tool, { votes, pull }]) => [tool, near(votes), near(pull)]).sort() }
}

describe('bounds', () => {
  it('removes the oldest first, and completely', () => {
    fc.assert(
      fc.property(requests, fc.integer({ min: 1, max: 8 }), (all, max) => {
        const long = createUsageMemory(max, AT_ONCE)
        for (const [request, tool] of all) long.learn(example(request, tool), tool)
        const fresh = createUsageMemory(max, AT_ONCE)
        for (const [request, tool] of all.slice(-max)) fresh.learn(example(request, tool), tool)
        expect(long.examples()).toEqual(fresh.examples())
        for (const ask of ['red apple', 'car race', 'pie']) expect(rounded(long, ask)).toEqual(rounded(fresh, ask))
      })
    )
  })

  it('keeps a limited part of a request', () => {
    const memory = createUsageMemory(2, AT_ONCE)
    memory.learn(example('word '.repeat(200_000), 'a'), 'a')
    expect(memory.examples()[0]?.request.length).toBeLessThanOrEqual(2000)
  })

  it('keeps nothing when told to keep nothing', () => {
    const memory = createUsageMemory(0, AT_ONCE)
    memory.learn(example('weather', 'a'), 'a')
    expect(memory.examples()).toEqual([])
    expect(memory.opinion('weather')).toBeUndefined()
  })
})

it('shares of votes add up to one', () => {
  fc.assert(
    fc.property(requests, (all) => {
      const memory = createUsageMemory(100, AT_ONCE)
      for (const [request, tool] of all) memory.learn(example(request, tool), tool)
      const opinion = memory.opinion('red apple car')
      if (!opinion) return
      const sum = [...opinion.byTool.values()].reduce((total, { votes }) => total + votes, 0)
      expect(sum).toBeCloseTo(1)
      expect(opinion.nearest).toBeLessThanOrEqual(1)
    })
  )
})
