import { describe, expect, it } from 'vitest'
import { createLogger } from '../lib/logger.ts'
import { createRouter } from '../routing/router.ts'
import type { Json, KeyValueStore } from '../storage/key-value-store.ts'
import { openStoredUsage } from './stored-usage.ts'

function memoryFacts(): KeyValueStore {
  const values = new Map<string, Json>()
  return {
    get: async (_, key) => values.get(key) ?? null,
    add: async (_, key, value) => !values.has(key) && values.set(key, value) !== undefined,
    set: async (_, key, value) => void values.set(key, value),
    remove: async (_, key) => void values.delete(key),
    list: async () => [...values].map(([key, value]) => ({ key, value }))
  }
}

async function gateway(facts: KeyValueStore) {
  const router = createRouter()
  const usage = await openStoredUsage(facts, router, createLogger('silent'))
  return { usage, requests: () => router.usage().map(({ request }) => request) }
}

describe('what is learnt from use', () => {
  it('is there after a restart', async () => {
    const facts = memoryFacts()
    const before = await gateway(facts)
    before.usage.learn('mail the report', 'post', 'send')
    await before.usage.flush()
    expect((await gateway(facts)).requests()).toEqual(['mail the report'])
  })

  it('of two gateways that share a store is kept from both', async () => {
    const facts = memoryFacts()
    const [one, two] = [await gateway(facts), await gateway(facts)]
    one.usage.learn('first', 'a', 'x')
    two.usage.learn('second', 'b', 'y')
    await one.usage.flush()
    await two.usage.flush()
    expect((await gateway(facts)).requests()).toEqual(['first', 'second'])
  })

  it('stays forgotten when another gateway, which still knows it, saves', async () => {
    const facts = memoryFacts()
    const running = await gateway(facts)
    running.usage.learn('secret plan', 'a', 'x')
    await running.usage.flush()
    const clearing = await gateway(facts)
    expect(clearing.requests()).toEqual(['secret plan'])
    await clearing.usage.forget()
    expect(clearing.requests()).toEqual([])
    await new Promise<void>((done) => {
      const started = Date.now()
      const wait = () => (Date.now() > started ? done() : setImmediate(wait))
      wait()
    })
    running.usage.learn('later', 'a', 'x')
    await running.usage.flush()
    expect(running.requests()).toEqual(['later'])
    expect((await gateway(facts)).requests()).toEqual(['later'])
  })

  it('is bounded', async () => {
    const facts = memoryFacts()
    const { usage } = await gateway(facts)
    for (let at = 0; at < 2100; at += 1) usage.learn(`request ${at}`, 'a', 'x')
    await usage.flush()
    const kept = (await gateway(facts)).requests()
    expect(kept).toHaveLength(2000)
    expect(kept.at(-1)).toBe('request 2099')
  })

  it('leaves out what is broken in the store', async () => {
    const facts = memoryFacts()
    await facts.set('routing-usage', 'examples', [
      1,
      { request: 'x' },
      { request: 'ok', server: 's', tool: 't', at: 1 }
    ])
    expect((await gateway(facts)).requests()).toEqual(['ok'])
  })
})
