import { describe, expect, it } from 'vitest'
import { AppError } from '../../lib/errors.ts'
import type { RealmProcess } from './code-channel.ts'
import { localPlaces, RealmQueue } from './realm-queue.ts'

const { signal } = new AbortController()
const start = async () => ({ stop: async () => {} }) as RealmProcess

describe('a program for which there is no place', () => {
  it('waits, is told why, and begins when another one has stopped', async () => {
    const queue = new RealmQueue(localPlaces(1), { lookMs: 60_000 })
    const first = await queue.open({ signal, owner: 'a' }, start)
    const told: string[] = []
    const second = queue.open({ signal, owner: 'b', onQueued: (reason) => told.push(reason) }, start)
    await expect.poll(() => told).toEqual([expect.stringContaining('All 1 sandboxes for programs are in use')])
    await first.stop()
    await (await second).stop()
    await queue.open({ signal, owner: 'c' }, start)
  })

  it('looks again, because other instances give places back too', async () => {
    let looks = 0
    const reserve = async () => {
      if (++looks < 3) throw new AppError('unavailable', 'too_many_programs', 'Full.')
      return () => {}
    }
    await new RealmQueue(reserve, { lookMs: 1 }).open({ signal, owner: 'a' }, start)
    expect(looks).toBe(3)
  })

  it('is refused with the reason after a while, and leaves when it is cancelled', async () => {
    const full = localPlaces(0)
    const soon = new RealmQueue(full, { waitMs: 5, lookMs: 1 }).open({ signal, owner: 'a' }, start)
    await expect(soon).rejects.toMatchObject({ code: 'too_many_programs' })
    const cancel = new AbortController()
    const onQueued = () => cancel.abort(new Error('cancelled'))
    const waiting = new RealmQueue(full, { lookMs: 60_000 })
    await expect(waiting.open({ signal: cancel.signal, owner: 'a', onQueued }, start)).rejects.toThrow('cancelled')
  })

  it('gives its place back if its container does not start, and only once if it is stopped twice', async () => {
    const reserve = localPlaces(1)
    const queue = new RealmQueue(reserve, { waitMs: 0 })
    const failing = queue.open({ signal, owner: 'a' }, () => Promise.reject(new Error('no engine')))
    await expect(failing).rejects.toThrow('no engine')
    const realm = await queue.open({ signal, owner: 'a' }, start)
    await realm.stop()
    await realm.stop()
    await queue.open({ signal, owner: 'a' }, start)
    await expect(queue.open({ signal, owner: 'a' }, start)).rejects.toMatchObject({ code: 'too_many_programs' })
  })
})
