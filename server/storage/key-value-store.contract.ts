/** The contract that every KeyValueStore must pass; each adapter's test runs it. */
import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { KeyValueStore } from './key-value-store.ts'
import type { StoreUnderTest } from './session-store.contract.ts'

export function describeKeyValueStore(name: string, open: () => Promise<StoreUnderTest>): void {
  describe(`key-value store: ${name}`, () => {
    let opened: StoreUnderTest
    let a: KeyValueStore
    let b: KeyValueStore
    let space: string
    beforeEach(async () => {
      opened = await open()
      a = opened.first.keyValues
      b = opened.second.keyValues
      space = randomUUID()
    })
    afterEach(() => opened.dispose())

    it('sets, gets, lists and removes', async () => {
      const odd = { text: '"\0é💥', list: [1, null, { deep: true }] }
      expect(await a.get(space, 'x')).toBeNull()
      await a.set(space, 'x', odd)
      await a.set(space, 'y', 1)
      await a.set(space, 'y', 2)
      await a.set(`${space}2`, 'x', 'other')
      expect(await b.get(space, 'x')).toEqual(odd)
      expect((await b.list(space)).sort((p, q) => (p.key < q.key ? -1 : 1))).toEqual([
        { key: 'x', value: odd },
        { key: 'y', value: 2 }
      ])
      await b.remove(space, 'x')
      await b.remove(space, 'x')
      expect(await a.get(space, 'x')).toBeNull()
      expect(await a.get(`${space}2`, 'x')).toBe('other')
    })

    it('replaces a value only if it is still the known one', async () => {
      const first = { title: 'é"', at: 1.5, list: [null] }
      await a.set(space, 'x', first)
      const known = await b.get(space, 'x')
      const won = await Promise.all(
        Array.from({ length: 10 }, (_, i) => (i % 2 ? a : b).replace(space, 'x', known, { ...first, at: i }))
      )
      expect(won.filter(Boolean)).toHaveLength(1)
      expect(await a.get(space, 'x')).toEqual({ ...first, at: won.indexOf(true) })
      expect(await a.replace(space, 'none', null, 1)).toBe(false)
      expect(await a.get(space, 'none')).toBeNull()
    })

    it('lets one of many concurrent adds win', async () => {
      const won = await Promise.all(Array.from({ length: 20 }, (_, i) => (i % 2 ? a : b).add(space, 'x', i)))
      expect(won.filter(Boolean)).toHaveLength(1)
      expect(await a.get(space, 'x')).toBe(won.indexOf(true))
    })
  })
}
