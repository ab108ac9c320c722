import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { WorkspaceEntry } from '../../../workspace-server/protocol.ts'
import { CheckpointFixture, chunked, contentOf, fileEntry, files, MB, put, sha256 } from './checkpoint-files.fixture.ts'
import { encodeRecord, type ManifestRecord } from './manifest-record.ts'

let fixture: CheckpointFixture
beforeEach(() => {
  fixture = new CheckpointFixture()
})
afterEach(() => fixture.dispose())

describe('many contents at once', () => {
  it('reads what lies together, and leaves large and sparse contents to the other way', async () => {
    const checkpoint = await fixture.store.open('s', 1)
    const small = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`f${at}`, randomBytes(at * 10)]))
    const others = { sparse: Buffer.concat([Buffer.alloc(100_000), Buffer.from('x')]), large: randomBytes(300_000) }
    await put(checkpoint, { ...small, ...others })
    await put(checkpoint, { later: 'in another place' }, ['f7'])
    const wanted = [...Object.values(small), others.sparse, others.large, Buffer.from('in another place')].reverse()
    const kept = wanted.filter((content) => content !== small.f7)
    const found = await checkpoint.readSmall(kept.map(sha256))
    expect(found.map((content) => content && sha256(content))).toEqual(
      kept.map((content) => (Object.values(others).includes(content) ? undefined : sha256(content)))
    )
    await expect(checkpoint.readSmall([sha256(Buffer.from('?'))])).rejects.toMatchObject({
      code: 'checkpoint_content_missing'
    })
    await checkpoint.close()
  })

  // Checked: without the comparison of hashes, the changed bytes are returned.
  it('refuses bytes that have changed on disk', async () => {
    const checkpoint = await fixture.store.open('s', 1)
    await put(checkpoint, { a: 'a'.repeat(100), b: 'b'.repeat(100) })
    const [pack] = fixture.stored('.pack')
    writeFileSync(pack ?? '', 'x'.repeat(200))
    const [a, b] = ['a', 'b'].map((text) => sha256(Buffer.from(text.repeat(100))))
    await expect(checkpoint.readSmall([a ?? '', b ?? ''])).rejects.toMatchObject({ code: 'checkpoint_damaged' })
    writeFileSync(pack ?? '', 'a'.repeat(100))
    await expect(checkpoint.readSmall([a ?? '', b ?? ''])).rejects.toMatchObject({ code: 'checkpoint_damaged' })
    await checkpoint.close()
  })
})

describe('bounds', () => {
  it('refuses a commit beyond the limit, keeps the state before, and goes on with less', async () => {
    const store = fixture.storeOf(MB)
    const checkpoint = await store.open('s', 1)
    await put(checkpoint, { a: 'a'.repeat(600_000) })
    const full = { kind: 'unavailable', code: 'checkpoint_full' }
    await expect(put(checkpoint, { b: 'b'.repeat(600_000) })).rejects.toMatchObject(full)
    expect(Object.keys(await files(checkpoint))).toEqual(['a'])
    await put(checkpoint, { b: 'b'.repeat(600_000) }, ['a'])
    await checkpoint.close()
    expect(Object.keys(await fixture.filesAt(2))).toEqual(['b'])
  })

  it('limits content that is added without a commit, in one stream or many', async () => {
    const store = fixture.storeOf(MB)
    const checkpoint = await store.open('s', 1)
    async function* endless(): AsyncIterable<Uint8Array> {
      for (;;) yield randomBytes(100_000)
    }
    const full = { code: 'checkpoint_full' }
    await expect(checkpoint.addBlob(endless())).rejects.toMatchObject(full)
    await expect(checkpoint.addBlob(randomBytes(MB + 1))).rejects.toMatchObject(full)
    const many = async () => {
      for (let i = 0; i < 100; i++) await checkpoint.addBlob(randomBytes(20_000))
    }
    await expect(many()).rejects.toMatchObject(full)
    await checkpoint.close()
  })

  // Checked: without the limit, 0 bytes of content become a manifest of 35 MB.
  it('limits the list of files, so that long paths do not fill the memory', async () => {
    const checkpoint = await fixture.store.open('s', 1)
    const dirs = Array.from({ length: 2200 }, (_, i): WorkspaceEntry => {
      return { path: `${'d'.repeat(16_000)}${i}`, type: 'dir', mode: 0, mtimeMs: 0 }
    })
    await checkpoint.commit({ put: dirs.slice(0, 2000), deleted: [] })
    const more = checkpoint.commit({ put: dirs.slice(2000), deleted: [] })
    await expect(more).rejects.toMatchObject({ code: 'checkpoint_full', message: expect.stringContaining('32 MB') })
    expect(checkpoint.entries.size).toBe(2000)
    await checkpoint.close()
    const again = await fixture.store.open('s', 2)
    expect(again.entries.size).toBe(2000)
    await again.close()
  })

  // Checked: without the limit, all 70 files of 64 MB are stored, and must be restored.
  it('limits what files take with their runs of zeros', async () => {
    const checkpoint = await fixture.store.open('s', 1)
    const { hash, size } = await checkpoint.addBlob(Buffer.alloc(64 * MB))
    const put = Array.from({ length: 70 }, (_, i): WorkspaceEntry => {
      return { path: `zeros${i}`, type: 'file', mode: 0, mtimeMs: 0, hash, size }
    })
    await expect(checkpoint.commit({ put, deleted: [] })).rejects.toMatchObject({
      code: 'checkpoint_full',
      message: expect.stringContaining('4096 MB')
    })
    await checkpoint.commit({ put: put.slice(0, 60), deleted: [] })
    await checkpoint.close()
  })

  it('counts names, and lets one that is over a lowered limit shrink', async () => {
    const roomy = await fixture.store.open('s', 1)
    const dirs = (count: number): WorkspaceEntry[] =>
      Array.from({ length: count }, (_, i) => ({ path: `${'d'.repeat(1000)}${i}`, type: 'dir', mode: 0, mtimeMs: 0 }))
    await roomy.commit({ put: dirs(1000), deleted: [] })
    await roomy.close()
    const tight = fixture.storeOf(500_000)
    const checkpoint = await tight.open('s', 2)
    const more = checkpoint.commit({ put: dirs(1001), deleted: [] })
    await expect(more).rejects.toMatchObject({ code: 'checkpoint_full' })
    await checkpoint.commit({ put: [], deleted: ['d'.repeat(1000) + 0] })
    expect(checkpoint.entries.size).toBe(999)
    await checkpoint.close()
  })
})

describe('compaction', () => {
  it('keeps contents and holds the disk to about twice what is live', async () => {
    const checkpoint = await fixture.store.open('s', 1)
    await put(checkpoint, { keep: 'k'.repeat(300_000), first: '1' })
    for (let i = 0; i < 60; i++) await put(checkpoint, { junk: randomBytes(200_000), small: String(i) })
    expect(fixture.weight('pack')).toBeLessThan(3 * MB)
    await checkpoint.close()
    expect(fixture.weight('pack')).toBeLessThan(2 * MB)
    expect(fixture.stored('manifest')).toHaveLength(1)
    expect(fixture.stored('tmp')).toEqual([])
    expect(await fixture.filesAt(2)).toMatchObject({ keep: 'k'.repeat(300_000), first: '1', small: '59' })
  })

  it('keeps the manifest small over thousands of commits of one file', async () => {
    const checkpoint = await fixture.store.open('s', 1)
    for (let i = 0; i < 600; i++) await put(checkpoint, { a: String(i) })
    expect(fixture.weight('manifest')).toBeLessThan(70_000)
    await checkpoint.close()
    expect(await fixture.filesAt(2)).toEqual({ a: '599' })
  })

  it('can still read content while it is moved', async () => {
    const checkpoint = await fixture.store.open('s', 1)
    const content = randomBytes(800_000)
    await put(checkpoint, { keep: content })
    const chunks: Uint8Array[] = []
    for await (const chunk of checkpoint.read(sha256(content), 50_000)) {
      chunks.push(Buffer.from(chunk))
      await put(checkpoint, { junk: randomBytes(400_000) })
    }
    expect(Buffer.concat(chunks).equals(content)).toBe(true)
    await checkpoint.close()
  })

  it('merges the packs of many owners', async () => {
    for (let epoch = 1; epoch <= 60; epoch++) {
      const checkpoint = await fixture.store.open('s', epoch)
      await put(checkpoint, { [`f${epoch}`]: String(epoch) })
      await checkpoint.close()
    }
    expect(fixture.stored('pack').length).toBeLessThanOrEqual(17)
    const all = await fixture.filesAt(61)
    expect(Object.keys(all)).toHaveLength(60)
    expect(all.f33).toBe('33')
  })
})

describe('runs of zeros', () => {
  const page = (text: string) => Buffer.concat([Buffer.from(text), Buffer.alloc(8192 - text.length)])

  it('take no room, come back, and survive compaction', async () => {
    const checkpoint = await fixture.store.open('s', 1)
    const sparse = Buffer.concat([Buffer.alloc(10 * MB), page('a'), Buffer.alloc(10 * MB), page('b'), Buffer.alloc(5)])
    await checkpoint.addBlob(chunked(sparse, 99_999))
    await checkpoint.commit({ put: [fileEntry('sparse', sparse)], deleted: [] })
    await put(checkpoint, { zeros: Buffer.alloc(300_000), whole: Buffer.alloc(2 * MB, 'x') })
    expect(fixture.weight('pack')).toBeLessThan(2 * MB + 200_000)
    // Enough dead content that the packs are rewritten.
    for (let i = 0; i < 4; i++) await put(checkpoint, { whole: Buffer.alloc(2 * MB, String(i)) })
    await checkpoint.close()
    const again = await fixture.store.open('s', 2)
    expect((await contentOf(again, sha256(sparse))).equals(sparse)).toBe(true)
    expect((await contentOf(again, sha256(Buffer.alloc(300_000)))).length).toBe(300_000)
    await again.close()
    expect(fixture.weight('pack')).toBeLessThan(5 * MB)
  })

  it('are read from packs of earlier versions, which stored them in full', async () => {
    const content = Buffer.alloc(20_000)
    const checkpoint = await fixture.store.open('s', 1)
    await put(checkpoint, { zeros: 'placeholder' })
    await checkpoint.close()
    const [pack = ''] = fixture.stored('pack')
    const [manifest = ''] = fixture.stored('manifest')
    writeFileSync(pack, content)
    const blobs: ManifestRecord['blobs'] = [[sha256(content), 0, 0, content.length]]
    const record = { put: [fileEntry('zeros', content)], deleted: [], packs: [basename(pack)], blobs }
    writeFileSync(manifest, encodeRecord({ v: 1, snapshot: true, ...record }))
    const again = await fixture.store.open('s', 2)
    expect((await contentOf(again, sha256(content))).equals(content)).toBe(true)
    await again.close()
  })
})
