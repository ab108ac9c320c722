/** The contract that every object service must pass with our client. */
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { contentOf, type ObjectStore } from './object-store.ts'

const MB = 1024 * 1024

export function describeObjectStore(
  name: string,
  open: () => Promise<{ store: ObjectStore; dispose(): Promise<void> }>
): void {
  describe(`object store: ${name}`, () => {
    let opened: Awaited<ReturnType<typeof open>>
    let store: ObjectStore
    const prefix = `contract-${randomUUID()}/`
    beforeAll(async () => {
      opened = await open()
      store = opened.store
    })
    afterAll(() => opened.dispose())

    const all = async (under: string) => {
      const keys: string[] = []
      for (let from: string | undefined; ; ) {
        const page = await store.list(under, from)
        keys.push(...page.found.map(({ key }) => key))
        from = page.next
        if (from === undefined) return keys
      }
    }

    it('stores, reads in ranges, lists and removes', async () => {
      const content = randomBytes(10_000)
      await store.put(`${prefix}a/1`, contentOf(content))
      await store.put(`${prefix}a/1`, contentOf(content))
      for (let i = 2; i <= 5; i++) await store.put(`${prefix}a/${i}`, contentOf(Buffer.from(String(i))))
      await store.put(`${prefix}b`, contentOf(Buffer.from('b')))
      const part = await store.read(`${prefix}a/1`, 100, 50)
      expect(part?.total).toBe(10_000)
      expect(part?.bytes.equals(content.subarray(100, 150))).toBe(true)
      expect((await store.read(`${prefix}a/1`, 9990, 50))?.bytes).toHaveLength(10)
      expect(await store.read(`${prefix}none`, 0, 50)).toBeUndefined()
      expect(await all(`${prefix}a/`)).toEqual([1, 2, 3, 4, 5].map((n) => `${prefix}a/${n}`))
      const { found, now } = await store.list(`${prefix}b`)
      expect(found).toMatchObject([{ key: `${prefix}b`, bytes: 1 }])
      expect(Math.abs(now - Number(found[0]?.modifiedAt))).toBeLessThan(600_000)
      await store.remove([1, 2, 3].map((n) => `${prefix}a/${n}`))
      await store.remove([`${prefix}a/1`])
      expect(await all(prefix)).toEqual([`${prefix}a/4`, `${prefix}a/5`, `${prefix}b`])
    })

    it('lets one of several create an object', async () => {
      const key = `${prefix}created`
      const made = await Promise.all([1, 2, 3, 4].map((n) => store.create(key, Buffer.from(String(n)))))
      expect(made.filter(Boolean)).toHaveLength(1)
      expect(String((await store.read(key, 0, 10))?.bytes)).toBe(String(made.indexOf(true) + 1))
    })

    it('stores a large object in parts', async () => {
      const content = randomBytes(20 * MB + 7)
      await store.put(`${prefix}large`, contentOf(content))
      const hash = createHash('sha256')
      for (let at = 0; at < content.length; at += 8 * MB) {
        hash.update((await store.read(`${prefix}large`, at, 8 * MB))?.bytes ?? '')
      }
      expect(hash.digest('hex')).toBe(createHash('sha256').update(content).digest('hex'))
      expect((await store.listUploads(prefix)).found).toEqual([])
    })

    it('answers when asked', async () => {
      await expect(store.probe()).resolves.toBeUndefined()
    })
  })
}
