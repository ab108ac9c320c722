/**
 * The contract that every SessionStore must pass; each adapter's test runs it. `second` is another connection to the same store.
 */
import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { describeAgainstModel } from './session-store.model.ts'
import type { AcquireResult, SessionRecord, SessionStore } from './session-store.ts'
import { describeInstances, LONG, type SessionStores } from './session-store-instances.contract.ts'
import type { Store } from './store.ts'

export interface StoreUnderTest {
  first: Store
  second: Store
  /** Deletes all sessions and events, as an administrator's FLUSHDB would. */
  empty(): Promise<void>
  dispose(): Promise<void>
}

export function describeSessionStore(name: string, open: () => Promise<StoreUnderTest>): void {
  describe(`session store: ${name}`, () => {
    const context: Partial<SessionStores> = {}
    let opened: StoreUnderTest
    beforeEach(async () => {
      opened = await open()
      context.a = opened.first.sessions
      context.b = opened.second.sessions
      context.empty = () => opened.empty()
      context.id = randomUUID()
    })
    afterEach(() => opened.dispose())
    const get = () => complete(context)

    describe('lease', () => describeLease(get))
    describe('expiry', () => describeExpiry(get))
    describe('fence', () => describeFence(get))
    describe('live', () => describeLive(get))
    describe('idle', () => describeIdle(get))
    describe('epoch', () => describeEpoch(get))
    describe('instances', () => describeInstances(get))
    describe('ids', () => describeIds(get))
    describeAgainstModel(() => get().a)
  })
}

function complete(context: Partial<SessionStores>): SessionStores {
  const { a, b, empty, id } = context
  if (!a || !b || !empty || !id) throw new Error('the store was not opened')
  return { a, b, empty, id }
}

function granted(result: AcquireResult): SessionRecord {
  if (!result.granted) throw new Error(`held by ${result.holder}`)
  return result.record
}

function describeLease(context: () => SessionStores): void {
  it('creates a record on the first acquire', async () => {
    const { a, b, id } = context()
    const before = await a.now()
    const record = granted(await a.acquire(id, 'one', LONG))
    expect(record).toMatchObject({ sessionId: id, holder: 'one', busy: true, live: false, containerId: null })
    expect(record.createdAt).toBeGreaterThanOrEqual(before)
    expect(record.activeAt).toBe(record.createdAt)
    expect(record.leaseUntil).toBe(record.createdAt + LONG)
    expect(record.epoch).toBeGreaterThanOrEqual(before)
    expect(await b.get(id)).toEqual(record)
    expect(await b.list()).toEqual([record])
  })

  it('keeps the epoch and the busy mark for the same holder', async () => {
    const { a, b, id } = context()
    const { epoch } = granted(await a.acquire(id, 'one', LONG))
    await a.touch(id, epoch, { leaseMs: LONG, busy: true, activity: false })
    expect(granted(await b.acquire(id, 'one', LONG))).toMatchObject({ epoch, busy: true })
  })

  it('refuses another holder while busy; grants it a higher epoch when idle', async () => {
    const { a, b, id } = context()
    const { epoch } = granted(await a.acquire(id, 'one', LONG))
    await a.touch(id, epoch, { leaseMs: LONG, busy: true, activity: true })
    const refused = await b.acquire(id, 'two', LONG)
    expect(refused).toMatchObject({ granted: false, holder: 'one' })
    if (!refused.granted) {
      expect(refused.retryInMs).toBeGreaterThan(0)
      expect(refused.retryInMs).toBeLessThanOrEqual(LONG)
    }
    await a.touch(id, epoch, { leaseMs: LONG, busy: false, activity: true })
    const taken = granted(await b.acquire(id, 'two', LONG))
    expect(taken).toMatchObject({ holder: 'two', busy: true })
    expect(taken.epoch).toBeGreaterThan(epoch)
  })

  it('hands a released session, even a busy one, to another with a higher epoch', async () => {
    const { a, b, id } = context()
    const { epoch } = granted(await a.acquire(id, 'one', LONG))
    await a.touch(id, epoch, { leaseMs: LONG, busy: true, activity: true })
    await a.release(id, epoch)
    expect(await b.get(id)).toMatchObject({ holder: null, busy: false, epoch })
    expect(await a.touch(id, epoch, { leaseMs: LONG, busy: true, activity: true })).toBe(false)
    expect(granted(await b.acquire(id, 'two', LONG)).epoch).toBeGreaterThan(epoch)
  })

  it('keeps the container and the live mark when the holder changes', async () => {
    const { a, b, id } = context()
    const { epoch } = granted(await a.acquire(id, 'one', LONG))
    await a.reserve(id, epoch, 10)
    await a.bind(id, epoch, 'c1')
    await a.touch(id, epoch, { leaseMs: LONG, busy: false, activity: true })
    expect(granted(await b.acquire(id, 'two', LONG))).toMatchObject({ containerId: 'c1', live: true })
  })

  it('grants one epoch among 100 concurrent acquires by two busy holders', async () => {
    const { a, b, id } = context()
    const attempt = async (store: SessionStore, holder: string) => {
      const result = await store.acquire(id, holder, LONG)
      if (!result.granted) return null
      const { epoch } = result.record
      return (await store.touch(id, epoch, { leaseMs: LONG, busy: true, activity: true })) ? epoch : null
    }
    const tries = Array.from({ length: 100 }, (_, i) => (i % 2 ? attempt(a, 'one') : attempt(b, 'two')))
    const won = new Set((await Promise.all(tries)).filter((epoch) => epoch !== null))
    expect(won.size).toBe(1)
    expect(won.has((await a.get(id))?.epoch ?? 0)).toBe(true)
  })
}

function describeExpiry(context: () => SessionStores): void {
  const until = async (store: SessionStore, id: string) => {
    const leaseUntil = (await store.get(id))?.leaseUntil ?? 0
    await vi.waitFor(async () => expect(await store.now()).toBeGreaterThanOrEqual(leaseUntil), { interval: 5 })
  }

  it('grants the session to another holder when the lease of a busy one expires, not before', async () => {
    const { a, b, id } = context()
    const { epoch } = granted(await a.acquire(id, 'one', LONG))
    await a.touch(id, epoch, { leaseMs: 80, busy: true, activity: true })
    const leaseUntil = (await a.get(id))?.leaseUntil ?? 0
    const taken = await vi.waitFor(async () => granted(await b.acquire(id, 'two', LONG)), { interval: 5 })
    expect(taken.activeAt).toBeGreaterThanOrEqual(leaseUntil)
    expect(taken).toMatchObject({ holder: 'two', busy: true })
    expect(taken.epoch).toBeGreaterThan(epoch)
  })

  it('lets the same holder keep its epoch after its lease expired and nobody took the session', async () => {
    const { a, id } = context()
    const { epoch } = granted(await a.acquire(id, 'one', 20))
    await until(a, id)
    expect(granted(await a.acquire(id, 'one', LONG)).epoch).toBe(epoch)
  })

  it('extends a lease that expired but that nobody took', async () => {
    const { a, b, id } = context()
    const { epoch } = granted(await a.acquire(id, 'one', 20))
    await until(a, id)
    expect(await a.touch(id, epoch, { leaseMs: LONG, busy: true, activity: false })).toBe(true)
    expect(await b.acquire(id, 'two', LONG)).toMatchObject({ granted: false })
  })
}

function describeFence(context: () => SessionStores): void {
  it('refuses every operation with an old epoch and changes nothing', async () => {
    const { a, b, id } = context()
    const old = granted(await a.acquire(id, 'one', LONG)).epoch
    await a.release(id, old)
    const record = granted(await b.acquire(id, 'two', LONG))
    for (const epoch of [old, record.epoch + 1, 0]) {
      expect(await a.touch(id, epoch, { leaseMs: 1, busy: true, activity: true })).toBe(false)
      expect(await a.reserve(id, epoch, 10)).toBe('lost')
      expect(await a.bind(id, epoch, 'c')).toBe(false)
      expect(await a.unbind(id, epoch)).toBe(false)
      expect(await a.remove(id, epoch)).toBe(false)
      await a.release(id, epoch)
    }
    expect(await a.get(id)).toEqual(record)
    expect(await a.countLive()).toBe(0)
  })

  it('treats a session that does not exist as lost', async () => {
    const { a, id } = context()
    expect(await a.get(id)).toBeNull()
    expect(await a.touch(id, 1, { leaseMs: 1, busy: true, activity: true })).toBe(false)
    expect(await a.reserve(id, 1, 10)).toBe('lost')
    expect(await a.bind(id, 1, 'c')).toBe(false)
    expect(await a.unbind(id, 1)).toBe(false)
    expect(await a.remove(id, 1)).toBe(false)
    await a.release(id, 1)
    expect(await a.list()).toEqual([])
  })
}

function describeLive(context: () => SessionStores): void {
  it('reserves up to the limit under concurrency, from two connections', async () => {
    const { a, b, id } = context()
    const one = async (i: number) => {
      const store = i % 2 ? a : b
      const { epoch } = granted(await store.acquire(`${id}-${i}`, 'h', LONG))
      return await store.reserve(`${id}-${i}`, epoch, 7)
    }
    const outcomes = await Promise.all(Array.from({ length: 30 }, (_, i) => one(i)))
    expect(outcomes.filter((outcome) => outcome === 'ok')).toHaveLength(7)
    expect(outcomes.filter((outcome) => outcome === 'full')).toHaveLength(23)
    expect(await b.countLive()).toBe(7)
  })

  it('does not count a session against itself, and frees its place on unbind and remove', async () => {
    const { a, id } = context()
    const { epoch } = granted(await a.acquire(id, 'h', LONG))
    const other = granted(await a.acquire(`${id}2`, 'h', LONG)).epoch
    expect(await a.reserve(id, epoch, 1)).toBe('ok')
    expect(await a.reserve(id, epoch, 1)).toBe('ok')
    expect(await a.reserve(`${id}2`, other, 1)).toBe('full')
    expect(await a.bind(id, epoch, 'c')).toBe(true)
    expect(await a.get(id)).toMatchObject({ containerId: 'c', live: true })
    expect(await a.unbind(id, epoch)).toBe(true)
    expect(await a.get(id)).toMatchObject({ containerId: null, live: false })
    expect(await a.reserve(`${id}2`, other, 1)).toBe('ok')
    expect(await a.remove(`${id}2`, other)).toBe(true)
    expect(await a.countLive()).toBe(0)
    expect((await a.list()).map((record) => record.sessionId)).toEqual([id])
  })

  it('counts a bound session as live even when nobody reserved it', async () => {
    const { a, id } = context()
    const { epoch } = granted(await a.acquire(id, 'h', LONG))
    await a.bind(id, epoch, 'c')
    await a.touch(id, epoch, { leaseMs: LONG, busy: false, activity: true })
    expect(await a.countLive()).toBe(1)
    expect((await a.listLive()).map((record) => record.sessionId)).toEqual([id])
    expect(await a.count()).toBe((await a.list()).length)
    expect(await a.takeIdle('h', { idleMs: 0, leaseMs: LONG, limit: 1 })).toHaveLength(1)
  })
}

function describeIdle(context: () => SessionStores): void {
  const live = async (store: SessionStore, id: string, holder: string) => {
    const { epoch } = granted(await store.acquire(id, holder, LONG))
    await store.reserve(id, epoch, 1000)
    await store.touch(id, epoch, { leaseMs: LONG, busy: false, activity: true })
    return epoch
  }
  const take = (store: SessionStore, holder: string, idleMs = 0, limit = 100) =>
    store.takeIdle(holder, { idleMs, leaseMs: LONG, limit })

  it('takes each idle session exactly once with several takers', async () => {
    const { a, b, id } = context()
    for (let i = 0; i < 20; i++) await a.release(`${id}-${i}`, await live(a, `${id}-${i}`, 'gone'))
    const takers = Array.from({ length: 6 }, (_, i) => take(i % 2 ? a : b, `taker-${i}`, 0, 5))
    const ids = (await Promise.all(takers)).flat().map((record) => record.sessionId)
    expect(ids).toHaveLength(20)
    expect(new Set(ids).size).toBe(20)
  })

  it('takes its own and released sessions, but not those of others, busy ones, or ones without a sandbox', async () => {
    const { a, id } = context()
    const own = await live(a, `${id}-own`, 'me')
    await a.release(`${id}-free`, await live(a, `${id}-free`, 'other'))
    await live(a, `${id}-other`, 'other')
    await a.touch(`${id}-busy`, await live(a, `${id}-busy`, 'me'), { leaseMs: LONG, busy: true, activity: true })
    await a.acquire(`${id}-cold`, 'me', LONG)
    const before = await a.get(`${id}-own`)
    const taken = await take(a, 'me')
    expect(taken.map((record) => record.sessionId).sort()).toEqual([`${id}-free`, `${id}-own`])
    const mine = taken.find((record) => record.sessionId === `${id}-own`)
    expect(mine).toMatchObject({ holder: 'me', live: true, busy: true, activeAt: before?.activeAt })
    expect(mine?.epoch).toBeGreaterThan(own)
    expect(await a.get(`${id}-own`)).toEqual(mine)
  })

  it('takes a busy session of another holder whose lease has expired', async () => {
    const { a, b, id } = context()
    await a.touch(id, await live(a, id, 'dead'), { leaseMs: 30, busy: true, activity: true })
    await vi.waitFor(async () => expect(await take(b, 'me')).toHaveLength(1), { interval: 5 })
  })

  it('counts acquire and active touches as activity, but not plain touches', async () => {
    const { a, id } = context()
    const epoch = await live(a, id, 'me')
    const first = (await a.get(id))?.activeAt ?? 0
    await vi.waitFor(async () => expect(await a.now()).toBeGreaterThan(first + 5), { interval: 2 })
    await a.touch(id, epoch, { leaseMs: LONG, busy: false, activity: false })
    expect(await a.get(id)).toMatchObject({ activeAt: first })
    expect(await take(a, 'me', LONG)).toEqual([])
    await a.touch(id, epoch, { leaseMs: LONG, busy: false, activity: true })
    const second = (await a.get(id))?.activeAt ?? 0
    expect(second).toBeGreaterThan(first)
    await vi.waitFor(async () => expect(await a.now()).toBeGreaterThan(second), { interval: 1 })
    expect(granted(await a.acquire(id, 'me', LONG)).activeAt).toBeGreaterThan(second)
  })

  it('counts a visit as activity, whoever holds the session, and changes nothing else', async () => {
    const { a, b, id } = context()
    await live(a, id, 'me')
    const before = await a.get(id)
    await vi.waitFor(async () => expect(await a.now()).toBeGreaterThan((before?.activeAt ?? 0) + 20), { interval: 5 })
    await b.visit(id)
    const after = await a.get(id)
    expect(after?.activeAt).toBeGreaterThan(before?.activeAt ?? Infinity)
    expect({ ...after, activeAt: 0 }).toEqual({ ...before, activeAt: 0 })
    expect((await a.listLive()).map(({ activeAt }) => activeAt)).toContain(after?.activeAt)
    await a.visit(`${id}-unknown`)
    expect(await a.get(`${id}-unknown`)).toBeNull()
  })

  it('takes the longest idle first and only those idle for long enough', async () => {
    const { a, id } = context()
    await live(a, `${id}-old`, 'me')
    const from = (await a.get(`${id}-old`))?.activeAt ?? 0
    await vi.waitFor(async () => expect(await a.now()).toBeGreaterThan(from + 50), { interval: 5 })
    await live(a, `${id}-new`, 'me')
    const first = await take(a, 'me', 0, 1)
    expect(first.map((record) => record.sessionId)).toEqual([`${id}-old`])
    await a.touch(`${id}-old`, first[0]?.epoch ?? 0, { leaseMs: LONG, busy: false, activity: false })
    const now = await a.now()
    const idleMs = Math.floor((now - from) / 2 + 20)
    const taken = (await take(a, 'me', idleMs)).map((record) => record.sessionId)
    expect(taken[0]).toBe(`${id}-old`)
  })
}

function describeEpoch(context: () => SessionStores): void {
  it('grows across many changes of holder within a millisecond, and across removal', async () => {
    const { a, b, id } = context()
    let last = 0
    for (let i = 0; i < 50; i++) {
      const { epoch } = granted(await (i % 2 ? a : b).acquire(id, `h${i % 2}`, LONG))
      expect(epoch).toBeGreaterThan(last)
      last = epoch
      await a.touch(id, epoch, { leaseMs: LONG, busy: false, activity: true })
      if (i % 3 === 0) expect(await a.remove(id, epoch)).toBe(true)
    }
  })

  it('grows even if all data is lost', async () => {
    const { a, id, empty } = context()
    const { epoch } = granted(await a.acquire(id, 'one', LONG))
    await empty()
    expect(await a.get(id)).toBeNull()
    await vi.waitFor(async () => expect(await a.now()).toBeGreaterThan(epoch), { interval: 1 })
    expect(granted(await a.acquire(id, 'one', LONG)).epoch).toBeGreaterThan(epoch)
  })
}

function describeIds(context: () => SessionStores): void {
  it('keeps hostile ids apart', async () => {
    const { a, b, id } = context()
    const ids = [
      'a}b',
      '{x}',
      '*',
      '%7B',
      '{',
      '\0',
      'a\0b',
      "'; DROP TABLE sessions; --",
      '__proto__',
      '\n',
      '\u00e9',
      'e\u0301'
    ]
    const all = [...ids, 'x'.repeat(256), `${id}:events`, '💥', '%2', ' ', '-', '+', '(a', '\ufffd']
    for (const each of all) granted(await a.acquire(each, each, LONG))
    for (const each of all) expect(await b.get(each)).toMatchObject({ sessionId: each, holder: each })
    expect((await b.list()).map((record) => record.sessionId).sort()).toEqual([...all].sort())
  })

  it('refuses ids that no store can tell apart', async () => {
    const { a } = context()
    for (const bad of ['', 'x'.repeat(257), '\ud800', 'a\udc00']) {
      await expect(a.acquire(bad, 'h', LONG)).rejects.toMatchObject({ kind: 'invalid', code: 'invalid_session_id' })
      await expect(a.get(bad)).rejects.toMatchObject({ code: 'invalid_session_id' })
    }
  })

  it('lists more sessions than fit one page', async () => {
    const { a, id } = context()
    const ids = Array.from({ length: 1100 }, (_, i) => `${id}-${i}`)
    await Promise.all(ids.map((each) => a.acquire(each, 'h', LONG)))
    expect((await a.list()).map((record) => record.sessionId).sort()).toEqual(ids.sort())
  })
}
