import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { CheckpointFixture, files, MB, put } from './checkpoint-files.fixture.ts'

let fixture: CheckpointFixture
beforeEach(() => {
  fixture = new CheckpointFixture()
})
afterEach(() => fixture.dispose())

describe('owners', () => {
  it('ignores what an old owner writes after a newer one has committed, and tells it', async () => {
    const old = await fixture.store.open('s', 5)
    await put(old, { a: 'old', big: randomBytes(MB) }, [])
    const newer = await fixture.store.open('s', 6)
    await put(old, { a: 'late' })
    await put(newer, { b: 'new' }, ['big'])
    await expect(put(old, { c: 'stale' })).rejects.toMatchObject({ kind: 'conflict', code: 'lease_lost' })
    await old.close()
    expect(await files(newer)).toEqual({ a: 'old', b: 'new' })
    await newer.close()
    expect(await fixture.filesAt(7)).toEqual({ a: 'old', b: 'new' })
  })

  it('keeps what a newer owner has opened when the old one rewrites and deletes its packs', async () => {
    const old = await fixture.store.open('s', 5)
    const precious = randomBytes(300_000).toString('hex')
    await put(old, { precious })
    const newer = await fixture.store.open('s', 6)
    await put(old, {}, ['precious'])
    for (let i = 0; i < 8; i++) await put(old, { junk: randomBytes(400_000) })
    await old.close()
    expect(await files(newer)).toEqual({ precious })
    await put(newer, { more: '1' })
    await newer.close()
    expect(await fixture.filesAt(7)).toEqual({ precious, more: '1' })
  })

  it('opens the newest state while its owner rewrites it all the time', async () => {
    const owner = await fixture.store.open('s', 5)
    await put(owner, { keep: 'x'.repeat(200_000) })
    let done = false
    const writing = (async () => {
      for (let i = 0; i < 40; i++) await put(owner, { junk: randomBytes(300_000) })
      done = true
    })()
    while (!done) expect(await fixture.filesAt(6)).toHaveProperty('keep')
    await writing
    await owner.close()
  })

  it('shows an owner nothing of epochs above its own', async () => {
    const newer = await fixture.store.open('s', 9)
    await put(newer, { a: '1' })
    await newer.close()
    const late = await fixture.store.open('s', 3)
    expect(late.entries.size).toBe(0)
    await expect(put(late, { b: '2' })).rejects.toMatchObject({ code: 'lease_lost' })
    await late.close()
    expect(await fixture.filesAt(9)).toEqual({ a: '1' })
    await expect(fixture.store.open('s', 1.5)).rejects.toMatchObject({ code: 'invalid_epoch' })
  })

  it('does not mix two that were opened with the same epoch', async () => {
    const one = await fixture.store.open('s', 5)
    await put(one, { a: 'one' })
    const two = await fixture.store.open('s', 5)
    for (let i = 0; i < 8; i++) await put(one, { junk: randomBytes(400_000) })
    expect(await files(two)).toEqual({ a: 'one' })
    await expect(put(two, { a: 'two' })).rejects.toMatchObject({ code: 'lease_lost' })
    await two.close()
    const three = await fixture.store.open('s', 5)
    await put(three, { a: 'three' })
    await expect(put(one, { a: 'again' })).rejects.toMatchObject({ code: 'lease_lost' })
    await one.close()
    await three.close()
    expect(await fixture.filesAt(5)).toMatchObject({ a: 'three' })
  })

  it('notices that the session was removed under its feet', async () => {
    const checkpoint = await fixture.store.open('s', 1)
    await put(checkpoint, { a: '1' })
    await fixture.store.remove('s', 99)
    await expect(put(checkpoint, { a: '2' })).rejects.toMatchObject({ kind: 'not-found', code: 'checkpoint_removed' })
    await checkpoint.close()
    expect(await fixture.filesAt(2)).toEqual({})
  })
})
