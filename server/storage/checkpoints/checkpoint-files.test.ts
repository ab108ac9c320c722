import { randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, statSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { WorkspaceEntry } from '../../../workspace-server/protocol.ts'
import { describeCheckpointStore } from '../checkpoint-store.contract.ts'
import { CheckpointFixture, chunked, contentOf, fileEntry, files, MB, put, sha256 } from './checkpoint-files.fixture.ts'

let fixture: CheckpointFixture
beforeEach(() => {
  fixture = new CheckpointFixture()
})
afterEach(() => fixture.dispose())

describeCheckpointStore('folder', async () => {
  const folder = new CheckpointFixture()
  let epoch = 0
  const takeOver = async () => ++epoch
  return { first: folder.store, second: folder.storeOf(64 * MB), takeOver, dispose: async () => folder.dispose() }
})

describe('keeping files', () => {
  it('gives back entries of every kind and their content, over epochs', async () => {
    const first = await fixture.store.open('s', 1)
    const big = randomBytes(3 * MB + 17)
    const { hash, size } = await first.addBlob(chunked(big, 100_001))
    expect({ hash, size }).toEqual({ hash: sha256(big), size: big.length })
    await first.addBlob(Buffer.from('hello'))
    await first.addBlob(new Uint8Array(0))
    const entries: WorkspaceEntry[] = [
      { path: 'd', type: 'dir', mode: 0o755, mtimeMs: 12.5 },
      { path: 'd/l', type: 'link', target: '../\0\ud800', mtimeMs: 2 },
      fileEntry('d/big', big, 0o4755),
      fileEntry('\0b64:AAA=', Buffer.from('hello')),
      fileEntry('__proto__', Buffer.from('hello')),
      fileEntry('../../etc/passwd', new Uint8Array(0))
    ]
    await first.commit({ put: entries, deleted: [] })
    expect([...first.entries.values()]).toEqual(entries)
    await first.close()
    const second = await fixture.store.open('s', 2)
    expect([...second.entries.values()]).toEqual(entries)
    expect((await contentOf(second, hash, 1000)).equals(big)).toBe(true)
    expect((await contentOf(second, sha256(new Uint8Array(0)))).length).toBe(0)
    expect(second.has(hash)).toBe(true)
    expect(second.has(sha256(Buffer.from('other')))).toBe(false)
    await second.close()
  })

  it('stores only what belongs to an entry, with the size that the content has', async () => {
    const checkpoint = await fixture.store.open('s', 1)
    const content = Buffer.from('abc')
    await checkpoint.addBlob(content)
    const noisy = { ...fileEntry('a', content), size: 999, data: 'x'.repeat(1000) }
    await checkpoint.commit({ put: [noisy], deleted: [] })
    expect(checkpoint.entries.get('a')).toEqual(fileEntry('a', content))
    expect(fixture.weight('manifest')).toBeLessThan(600)
    const bad = [
      { ...fileEntry('b', content), mode: -1 },
      { ...fileEntry('b', content), mtimeMs: Number.NaN },
      { ...fileEntry('', content) },
      { ...fileEntry('x'.repeat(20_000), content) },
      { ...fileEntry('b', content), hash: '../../x' }
    ]
    for (const entry of bad) {
      const refused = checkpoint.commit({ put: [entry], deleted: ['a'] })
      await expect(refused).rejects.toMatchObject({ kind: 'invalid', code: 'invalid_entry' })
    }
    expect(await files(checkpoint)).toEqual({ a: 'abc' })
    await checkpoint.close()
  })

  it('refuses a commit whose content was never added, and keeps the state before', async () => {
    const checkpoint = await fixture.store.open('s', 1)
    await put(checkpoint, { a: '1' })
    const entry = fileEntry('b', Buffer.from('2'))
    const refused = checkpoint.commit({ put: [entry], deleted: ['a'] })
    await expect(refused).rejects.toMatchObject({ kind: 'invalid', code: 'checkpoint_content_missing' })
    expect(await files(checkpoint)).toEqual({ a: '1' })
    await checkpoint.addBlob(Buffer.from('2'))
    await checkpoint.commit({ put: [entry], deleted: ['a'] })
    await checkpoint.close()
    expect(await fixture.filesAt(1)).toEqual({ b: '2' })
  })

  it('moves, replaces and shares content without storing it twice', async () => {
    const checkpoint = await fixture.store.open('s', 1)
    const big = randomBytes(500_000)
    await put(checkpoint, { a: big, b: big })
    await put(checkpoint, { c: big }, ['a', 'b'])
    await checkpoint.addBlob(chunked(big, 9999))
    await put(checkpoint, { d: big })
    expect(fixture.weight('pack')).toBeLessThan(2 * big.length)
    await checkpoint.commit({ put: [fileEntry('e', big)], deleted: ['c', 'd'] })
    expect([...checkpoint.entries.keys()]).toEqual(['e'])
    expect((await contentOf(checkpoint, sha256(big))).equals(big)).toBe(true)
    await checkpoint.close()
  })

  it('keeps a content as long as an entry has it, and no longer', async () => {
    const checkpoint = await fixture.store.open('s', 1)
    const hash = sha256(Buffer.from('same'))
    await put(checkpoint, { a: 'same', b: 'same' })
    await put(checkpoint, { a: 'other' })
    expect(checkpoint.has(hash)).toBe(true)
    await put(checkpoint, {}, ['b'])
    expect(checkpoint.has(hash)).toBe(false)
    await expect(contentOf(checkpoint, hash)).rejects.toMatchObject({ kind: 'not-found' })
    await checkpoint.close()
  })

  it('leaves nothing behind when a session is opened without a commit, and refuses use after close', async () => {
    await (await fixture.store.open('s', 1)).close()
    expect(readdirSync(fixture.dir)).toEqual([])
    const first = await fixture.store.open('s', 1)
    await put(first, { a: '1' })
    await first.close()
    const before = readdirSync(fixture.sessionDir()).sort()
    const second = await fixture.store.open('s', 2)
    expect(await files(second)).toEqual({ a: '1' })
    await second.addBlob(randomBytes(MB))
    await Promise.all([second.close(), second.close()])
    expect(readdirSync(fixture.sessionDir()).sort()).toEqual(before)
    await expect(second.addBlob(new Uint8Array(1))).rejects.toMatchObject({ code: 'checkpoint_closed' })
    await expect(put(second, { a: '2' })).rejects.toMatchObject({ code: 'checkpoint_closed' })
    await expect(contentOf(second, sha256(Buffer.from('1')))).rejects.toMatchObject({ code: 'checkpoint_closed' })
  })

  it('survives a content stream that breaks, also a large one', async () => {
    const checkpoint = await fixture.store.open('s', 1)
    async function* breaking(): AsyncIterable<Uint8Array> {
      yield* chunked(randomBytes(2 * MB), 70_000)
      throw new Error('the container died')
    }
    await expect(checkpoint.addBlob(breaking())).rejects.toThrow('the container died')
    await put(checkpoint, { a: '1' })
    await checkpoint.close()
    expect(await fixture.filesAt(1)).toEqual({ a: '1' })
  })

  it('takes many small pieces in one commit, in few files', async () => {
    const checkpoint = await fixture.store.open('s', 1)
    const many = Object.fromEntries(
      Array.from({ length: 3000 }, (_, i) => [`f${i}`, randomBytes(2000).toString('hex')])
    )
    await put(checkpoint, many)
    await checkpoint.close()
    expect(readdirSync(fixture.sessionDir()).length).toBe(2)
    expect(await fixture.filesAt(2)).toEqual(many)
  })

  it('keeps sessions apart, hostile ids too, in folders that only the owner may read', async () => {
    const ids = ['a', '../a', '/', '\0', '\ud800', '\ud801', 'a'.repeat(5000)]
    for (const id of ids) {
      const checkpoint = await fixture.store.open(id, 1)
      await put(checkpoint, { id })
      await checkpoint.close()
    }
    for (const id of ids) expect(await fixture.filesAt(1, id)).toEqual({ id: Buffer.from(id).toString() })
    expect(readdirSync(fixture.dir)).toHaveLength(ids.length)
    expect(statSync(fixture.sessionDir()).mode & 0o777).toBe(0o700)
    for (const name of readdirSync(fixture.sessionDir()))
      expect(statSync(join(fixture.sessionDir(), name)).mode & 0o777).toBe(0o600)
  })
})

describe('removal', () => {
  it('removes a session and nothing else, and does nothing if there is none', async () => {
    for (const id of ['s', 't']) {
      const checkpoint = await fixture.store.open(id, 1)
      await put(checkpoint, { id })
      await checkpoint.close()
    }
    await fixture.store.remove('s', 99)
    await fixture.store.remove('s', 99)
    expect(await fixture.filesAt(2, 's')).toEqual({})
    expect(await fixture.filesAt(2, 't')).toEqual({ id: 't' })
    expect(readdirSync(fixture.dir)).toHaveLength(1)
  })

  it('prunes sessions that were neither opened nor committed to for long, and leftovers of a removal', async () => {
    expect(await fixture.storeOf(1, join(fixture.dir, 'none')).prune(1)).toBe(0)
    for (const id of ['old', 'opened', 'committed']) {
      const checkpoint = await fixture.store.open(id, 1)
      await put(checkpoint, { id })
      await checkpoint.close()
    }
    mkdirSync(join(fixture.dir, '.removed-x'))
    mkdirSync(join(fixture.dir, 'not-ours'))
    const past = new Date(Date.now() - 3_600_000)
    const age = (path: string) => utimesSync(path, past, past)
    for (const name of readdirSync(fixture.dir)) {
      for (const file of readdirSync(join(fixture.dir, name))) age(join(fixture.dir, name, file))
      age(join(fixture.dir, name))
    }
    await (await fixture.store.open('opened', 2)).close()
    const busy = await fixture.store.open('committed', 2)
    await put(busy, { more: '1' })
    await busy.close()
    expect(await fixture.store.prune(2 * 3_600_000)).toBe(0)
    expect(await fixture.store.prune(1_800_000, new Set(['old']))).toBe(0)
    expect(await fixture.store.prune(1_800_000)).toBe(1)
    expect(await fixture.filesAt(3, 'old')).toEqual({})
    expect(await fixture.filesAt(3, 'opened')).toEqual({ id: 'opened' })
    expect(await fixture.filesAt(3, 'committed')).toEqual({ id: 'committed', more: '1' })
    expect(readdirSync(fixture.dir)).toContain('not-ours')
    expect(readdirSync(fixture.dir)).not.toContain('.removed-x')
  })
})
