/** The contract that every FileHeads must pass; each adapter's test runs it. */
import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type FileHeads, MAX_UPLOAD_AGE_MS } from './file-heads.ts'
import type { StoreUnderTest } from './session-store.contract.ts'
import { LONG } from './session-store-instances.contract.ts'

export function describeFileHeads(name: string, open: () => Promise<StoreUnderTest>): void {
  describe(`file heads: ${name}`, () => {
    let opened: StoreUnderTest
    let a: FileHeads
    let b: FileHeads
    let id: string
    beforeEach(async () => {
      opened = await open()
      a = opened.first.heads
      b = opened.second.heads
      id = `é}${randomUUID()}`
    })
    afterEach(() => opened.dispose())

    const epochOf = async (holder: string) => {
      const taken = await opened.first.sessions.acquire(id, holder, LONG)
      if (!taken.granted) throw new Error('held')
      return taken.record.epoch
    }
    const now = () => opened.first.sessions.now()

    it('replaces the value only from the known one, and can repeat that', async () => {
      const epoch = await epochOf('one')
      const since = await now()
      expect(await a.read(id)).toBeNull()
      const first = { epoch, known: null, next: '{"a":"é"}', since }
      expect(await a.swap(id, first)).toBe('ok')
      expect(await b.swap(id, first)).toBe('ok')
      expect(await b.read(id)).toBe('{"a":"é"}')
      expect(await b.swap(id, { epoch, known: first.next, next: '2', since })).toBe('ok')
      // A repeated command that arrives late must not bring an earlier value back.
      expect(await a.swap(id, first)).toBe('changed')
      expect(await a.swap(id, { epoch, known: null, next: '3', since })).toBe('changed')
      expect(await a.read(id)).toBe('2')
    })

    // Checked: if the epoch is not compared, the swap of the former owner succeeds.
    it('refuses an old epoch, and a session that does not exist', async () => {
      const since = await now()
      expect(await a.swap(id, { epoch: 1, known: null, next: '1', since })).toBe('lost')
      const old = await epochOf('one')
      await opened.first.sessions.release(id, old)
      const epoch = await epochOf('two')
      expect(await a.swap(id, { epoch: old, known: null, next: '1', since })).toBe('lost')
      expect(await a.read(id)).toBeNull()
      expect(await a.swap(id, { epoch, known: null, next: '2', since })).toBe('ok')
      expect(await a.swap(id, { epoch: old, known: '2', next: '3', since })).toBe('lost')
      expect(await a.read(id)).toBe('2')
    })

    it('refuses objects that were written too long ago', async () => {
      const epoch = await epochOf('one')
      const late = (await now()) - MAX_UPLOAD_AGE_MS - 1000
      expect(await a.swap(id, { epoch, known: null, next: '1', since: late })).toBe('late')
      expect(await a.read(id)).toBeNull()
    })

    it('lists and clears values, and removes them with the session', async () => {
      const epoch = await epochOf('one')
      await a.swap(id, { epoch, known: null, next: '1', since: await now() })
      expect((await b.list()).get(id)).toBe('1')
      expect(await b.clear(id, epoch - 1)).toBe(false)
      expect(await a.read(id)).toBe('1')
      expect(await b.clear(id, epoch)).toBe(true)
      expect(await a.read(id)).toBeNull()
      expect((await a.list()).has(id)).toBe(false)
      await a.swap(id, { epoch, known: null, next: '2', since: await now() })
      await opened.first.sessions.remove(id, epoch)
      expect(await a.read(id)).toBeNull()
      expect((await a.list()).has(id)).toBe(false)
      expect(await a.clear(id, epoch)).toBe(false)
      await epochOf('one')
      expect(await a.read(id)).toBeNull()
    })

    it('lets one of many concurrent changes win', async () => {
      const epoch = await epochOf('one')
      const since = await now()
      const all = Array.from({ length: 20 }, (_, i) =>
        (i % 2 ? a : b).swap(id, { epoch, known: null, next: String(i), since })
      )
      const results = await Promise.all(all)
      expect(results.filter((result) => result === 'ok')).toHaveLength(1)
      expect(await a.read(id)).toBe(String(results.indexOf('ok')))
    })
  })
}
