import { expect, it } from 'vitest'
import { fakeKeyValueStore } from '../../storage/fake-key-value-store.ts'
import { DefinitionCache } from './definition-cache.ts'

function cache(keyValues = fakeKeyValueStore()) {
  const read = (value: unknown) => (typeof value === 'string' ? value : undefined)
  return {
    keyValues,
    cache: new DefinitionCache<string>({ keyValues, space: 'x', most: 3, write: (value) => value, read })
  }
}

it('returns what was saved, and ignores unreadable values', async () => {
  const { keyValues, cache: one } = cache()
  await one.save('a', 'A')
  await keyValues.set('x', 'broken', 7)
  expect([...(await cache(keyValues).cache.load(['a', 'broken', 'gone']))]).toEqual([['a', 'A']])
})

it('keeps a limited number of rows, including all that are in use', async () => {
  const { keyValues, cache: one } = cache()
  for (const key of ['a', 'b', 'c', 'd', 'e']) await one.save(key, key)
  await one.prune(new Set(['a', 'b']))
  const left = (await keyValues.list('x')).map(({ key }) => key)
  expect(left).toHaveLength(3)
  expect(left).toEqual(expect.arrayContaining(['a', 'b']))
  expect(await keyValues.list('x-written')).toHaveLength(3)
})
