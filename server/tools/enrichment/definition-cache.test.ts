import { expect, it } from 'vitest'
import { memoryFacts } from '../../connections/connections.fixture.ts'
import { DefinitionCache } from './definition-cache.ts'

function cache(facts = memoryFacts()) {
  const read = (value: unknown) => (typeof value === 'string' ? value : undefined)
  return { facts, cache: new DefinitionCache<string>({ facts, space: 'x', most: 3, write: (value) => value, read }) }
}

it('gives back what was saved, and nothing that is not readable', async () => {
  const { facts, cache: one } = cache()
  await one.save('a', 'A')
  await facts.set('x', 'broken', 7)
  expect([...(await cache(facts).cache.load(['a', 'broken', 'gone']))]).toEqual([['a', 'A']])
})

it('keeps a bounded number, and all that is in use', async () => {
  const { facts, cache: one } = cache()
  for (const key of ['a', 'b', 'c', 'd', 'e']) await one.save(key, key)
  await one.prune(new Set(['a', 'b']))
  const left = (await facts.list('x')).map(({ key }) => key)
  expect(left).toHaveLength(3)
  expect(left).toEqual(expect.arrayContaining(['a', 'b']))
  expect(await facts.list('x-written')).toHaveLength(3)
})
