/** The contract that every EventLog must pass; each adapter's test runs it. */
import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { EventLog, NewEvent } from './event-log.ts'
import type { StoreUnderTest } from './session-store.contract.ts'

interface Context {
  opened: StoreUnderTest
  a: EventLog
  b: EventLog
  id: string
}

const MB = 1024 * 1024

export function describeEventLog(name: string, open: () => Promise<StoreUnderTest>): void {
  describe(`event log: ${name}`, () => {
    let context: Context | undefined
    beforeEach(async () => {
      const opened = await open()
      context = { opened, a: opened.first.events, b: opened.second.events, id: randomUUID() }
    })
    afterEach(() => context?.opened.dispose())
    const get = () => {
      if (!context) throw new Error('the store was not opened')
      return context
    }
    describe('append and read', () => describeAppend(get))
    describe('fence', () => describeFence(get))
    describe('keys', () => describeKeys(get))
    describe('bounds', () => describeBounds(get))
  })
}

function event(n: number): NewEvent {
  return { type: 'test', data: { n } }
}

function describeAppend(context: () => Context): void {
  it('numbers events from 1 and reads them back as appended', async () => {
    const { opened, a, b, id } = context()
    const before = await opened.first.sessions.now()
    const odd = { type: 'odd "\0\ud800💥\n', data: { text: '\ud83d \0 é', deep: { list: [1, null, true] } } }
    const stored = await a.append(id, [event(1), odd])
    expect(stored.map(({ seq, type, data }) => ({ seq, type, data }))).toEqual([
      { seq: 1, ...event(1) },
      { seq: 2, ...odd }
    ])
    for (const { at } of stored) expect(at).toBeGreaterThanOrEqual(before)
    expect(await b.append(id, [event(3)])).toMatchObject([{ seq: 3 }])
    expect((await b.read(id)).slice(0, 2)).toEqual(stored)
    expect(await b.lastSeq(id)).toBe(3)
  })

  it('returns the stored form of an event, not the input', async () => {
    const { a, id } = context()
    const stored = await a.append(id, [{ type: 'x', data: { gone: undefined, at: new Date(0) } }])
    expect(stored).toStrictEqual(await a.read(id))
  })

  it('pages', async () => {
    const { a, id } = context()
    await a.append(
      id,
      Array.from({ length: 25 }, (_, i) => event(i + 1))
    )
    const seqs = async (options: { after?: number; limit?: number }) => (await a.read(id, options)).map((e) => e.seq)
    expect(await seqs({ limit: 3 })).toEqual([1, 2, 3])
    expect(await seqs({ after: 3, limit: 3 })).toEqual([4, 5, 6])
    expect(await seqs({ after: 23, limit: 10 })).toEqual([24, 25])
    expect(await seqs({ after: 25 })).toEqual([])
    expect(await seqs({ after: 1000 })).toEqual([])
    expect((await a.read(id, { after: 10, limit: 1 }))[0]).toMatchObject({ data: { n: 11 } })
  })

  it('has no gaps and no duplicates under concurrent appends from two connections', async () => {
    const { a, b, id } = context()
    const jobs = Array.from({ length: 60 }, (_, i) => (i % 2 ? a : b).append(id, [event(i), event(i)]))
    const stored = (await Promise.all(jobs)).flat()
    const expected = Array.from({ length: 120 }, (_, i) => i + 1)
    expect(stored.map((e) => e.seq).sort((x, y) => x - y)).toEqual(expected)
    const read = await a.read(id)
    expect(read.map((e) => e.seq)).toEqual(expected)
    for (const pair of jobs) {
      const [first, second] = await pair
      expect(second?.seq).toBe((first?.seq ?? 0) + 1)
    }
    expect(read).toEqual(stored.sort((x, y) => x.seq - y.seq))
  })

  it('is not removed with an old epoch', async () => {
    const { opened, a, b, id } = context()
    const { sessions } = opened.first
    const epochOf = async (holder: string) => {
      const taken = await sessions.acquire(id, holder, 60_000)
      if (!taken.granted) throw new Error('held')
      return taken.record.epoch
    }
    const old = await epochOf('one')
    await sessions.release(id, old)
    const epoch = await epochOf('two')
    await a.append(id, [event(1)], { epoch })
    await expect(b.remove(id, old)).rejects.toMatchObject({ kind: 'conflict', code: 'lease_lost' })
    expect(await a.lastSeq(id)).toBe(1)
    await b.remove(id, epoch)
    expect(await a.lastSeq(id)).toBe(0)
  })

  it('keeps sessions apart and drops a removed one', async () => {
    const { a, b, id } = context()
    await a.append(id, [event(1), event(2)])
    await a.append(`${id}x`, [event(1)])
    await b.remove(id)
    await b.remove(id)
    expect(await a.read(id)).toEqual([])
    expect(await a.lastSeq(id)).toBe(0)
    expect(await a.lastSeq(`${id}x`)).toBe(1)
    expect(await a.append(id, [event(9)])).toMatchObject([{ seq: 1 }])
  })

  it('does nothing for an empty append', async () => {
    const { a, id } = context()
    expect(await a.append(id, [])).toEqual([])
    expect(await a.lastSeq(id)).toBe(0)
  })
}

function describeFence(context: () => Context): void {
  it('refuses an old epoch and an unknown session, and stores nothing', async () => {
    const { opened, a, b, id } = context()
    const lost = { kind: 'conflict', code: 'lease_lost' }
    await expect(a.append(id, [event(1)], { epoch: 1 })).rejects.toMatchObject(lost)
    const first = await opened.first.sessions.acquire(id, 'one', 60_000)
    if (!first.granted) throw new Error('not granted')
    expect(await a.append(id, [event(1)], { epoch: first.record.epoch })).toMatchObject([{ seq: 1 }])
    await opened.first.sessions.release(id, first.record.epoch)
    const second = await opened.second.sessions.acquire(id, 'two', 60_000)
    if (!second.granted) throw new Error('not granted')
    await expect(a.append(id, [event(2), event(3)], { epoch: first.record.epoch })).rejects.toMatchObject(lost)
    await expect(a.append(id, [], { epoch: first.record.epoch })).rejects.toMatchObject(lost)
    expect(await b.append(id, [event(2)], { epoch: second.record.epoch })).toMatchObject([{ seq: 2 }])
    expect(await a.lastSeq(id)).toBe(2)
  })
}

function describeKeys(context: () => Context): void {
  const once = (key: string, n = 0): NewEvent => ({ ...event(n), key })

  it('accepts exactly one of many concurrent events with the same key', async () => {
    const { a, b, id } = context()
    const tries = Array.from({ length: 20 }, (_, i) => (i % 2 ? a : b).append(id, [event(i), once('answer', i)]))
    const outcomes = await Promise.allSettled(tries)
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected')
        expect(outcome.reason).toMatchObject({ kind: 'conflict', code: 'event_exists' })
    }
    expect(await a.lastSeq(id)).toBe(2)
  })

  it('stores neither events nor keys when one of the keys is taken', async () => {
    const { a, id } = context()
    await a.append(id, [once('x')])
    await expect(a.append(id, [once('y'), once('x')])).rejects.toMatchObject({ code: 'event_exists' })
    await expect(a.append(id, [once('z'), once('z')])).rejects.toMatchObject({ code: 'event_exists' })
    expect(await a.append(id, [once('y'), once('z')])).toMatchObject([{ seq: 2 }, { seq: 3 }])
    expect(await a.append(`${id}x`, [once('x')])).toMatchObject([{ seq: 1 }])
  })

  it('forgets the keys of a removed session', async () => {
    const { a, id } = context()
    await a.append(id, [once('x')])
    await a.remove(id)
    expect(await a.append(id, [once('x')])).toMatchObject([{ seq: 1 }])
  })
}

function describeBounds(context: () => Context): void {
  const sized = (bytes: number): NewEvent => {
    const frame = Buffer.byteLength(JSON.stringify({ type: 't', data: { text: '' } }))
    return { type: 't', data: { text: 'x'.repeat(bytes - frame) } }
  }

  it('accepts an event of 24 MB, and refuses a whole append with an event of one byte more', async () => {
    const { a, id } = context()
    await a.append(id, [sized(24 * MB)])
    const refused = a.append(id, [event(1), sized(24 * MB + 1)])
    await expect(refused).rejects.toMatchObject({ kind: 'invalid', code: 'event_too_large' })
    expect(await a.lastSeq(id)).toBe(1)
    const frame = Buffer.byteLength('{"type":"t","data":{"text":""}}')
    expect((await a.read(id))[0]?.data.text).toHaveLength(24 * MB - frame)
  })

  it('gives large fields back as they were, and stores each content once', async () => {
    const { a, b, id } = context()
    const text = '\ud83d \0 é"\n'.repeat(20_000)
    const list = Array.from({ length: 30_000 }, (_, n) => ({ n: `short ${n}` }))
    const data = JSON.parse(
      JSON.stringify({ x: text, n: 1, list, large: [{ field: 'n' }] }).replace('"x"', '"__proto__"')
    )
    const stored = await a.append(id, [event(1), { type: 't', data }])
    expect(JSON.stringify(stored[1]?.data)).toBe(JSON.stringify(data))
    expect(await b.read(id)).toEqual(stored)
    const once = await a.bytes([id])
    await b.append(id, [{ type: 't', data: { text } }])
    expect((await b.bytes([id])) - once).toBeLessThan(1000)
    await b.append(`${id}-other`, [{ type: 't', data: { text } }])
    await a.remove(`${id}-other`)
    expect((await a.read(id, { after: 2 }))[0]?.data).toEqual({ text })
    await a.remove(id)
    expect(await a.bytes([id])).toBe(0)
  })

  it('leaves large fields out for a reader who does not need them', async () => {
    const { a, id } = context()
    const long = { type: 't', data: { text: 'x'.repeat(MB), n: 1 } }
    await a.append(id, [long, long])
    const read = await a.read(id, { bareUntil: 1 })
    expect(read.map(({ data }) => [String(data.text).length, data.n])).toEqual([
      [4, 1],
      [MB, 1]
    ])
  })

  it('does not store large fields of an append that is refused', async () => {
    const { a, id } = context()
    await a.append(id, [{ ...event(1), key: 'k' }])
    const before = await a.bytes([id])
    const refused = a.append(id, [{ ...sized(MB), key: 'k' }])
    await expect(refused).rejects.toMatchObject({ code: 'event_exists' })
    expect(await a.bytes([id])).toBe(before)
  })

  it('returns a long log in pages of bounded size, none of them empty', async () => {
    const { a, id } = context()
    for (let i = 0; i < 3; i++)
      await a.append(
        id,
        Array.from({ length: 10 }, () => sized(MB))
      )
    const pages: number[][] = []
    for (let after = 0; after < 30; after += pages.at(-1)?.length ?? 30)
      pages.push((await a.read(id, { after })).map(({ seq }) => seq))
    expect(pages.flat()).toEqual(Array.from({ length: 30 }, (_, i) => i + 1))
    expect(Math.max(...pages.map(({ length }) => length))).toBeLessThan(10)
  })

  it('counts bytes, not characters', async () => {
    const { a, id } = context()
    const refused = a.append(id, [{ type: 't', data: { text: 'é'.repeat(12 * MB) } }])
    await expect(refused).rejects.toMatchObject({ code: 'event_too_large' })
  })

  it('refuses an append that is too large in total, and invalid ranges', async () => {
    const { a, id } = context()
    const many = Array.from({ length: 1001 }, (_, i) => event(i))
    await expect(a.append(id, many)).rejects.toMatchObject({ kind: 'invalid', code: 'append_too_large' })
    const heavy = Array.from({ length: 49 }, () => sized(MB))
    await expect(a.append(id, heavy)).rejects.toMatchObject({ kind: 'invalid', code: 'append_too_large' })
    expect(await a.lastSeq(id)).toBe(0)
    for (const bad of [{ after: -1 }, { after: 0.5 }, { limit: 0 }, { limit: -1 }, { limit: 1e9 }, { after: NaN }]) {
      await expect(a.read(id, bad)).rejects.toMatchObject({ kind: 'invalid', code: 'invalid_range' })
    }
    expect(await a.append(id, many.slice(0, 1000))).toHaveLength(1000)
  })

  it('counts the bytes of some logs or of all, until they are removed', async () => {
    const { a, b, id } = context()
    const before = await a.bytes()
    await a.append(`${id}-x`, [{ type: 't', data: { text: 'é'.repeat(500) } }])
    await b.append(`${id}-x`, [{ type: 't', data: { text: 'x'.repeat(1000) } }])
    await a.append(`${id}-y`, [{ type: 't', data: { text: 'y'.repeat(3000) } }])
    const x = await b.bytes([`${id}-x`])
    expect(x).toBeGreaterThan(2000)
    expect(x).toBeLessThan(2200)
    expect(await a.bytes([`${id}-x`, `${id}-y`, `${id}-unknown`])).toBeGreaterThan(5000)
    expect(await a.bytes([])).toBe(0)
    expect((await a.bytes()) - before).toBeGreaterThan(5000)
    await b.remove(`${id}-x`)
    await a.remove(`${id}-y`)
    expect(await a.bytes([`${id}-x`, `${id}-y`])).toBe(0)
    expect(await a.bytes()).toBe(before)
  })
}
