import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { cpSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { CheckpointFixture, contentOf, files, MB, put, sha256 } from './checkpoint-files.fixture.ts'

let fixture: CheckpointFixture
beforeEach(() => {
  fixture = new CheckpointFixture()
})
afterEach(() => fixture.dispose())

describe('damage', () => {
  it('reports content that is not what it was', async () => {
    const checkpoint = await fixture.store.open('s', 1)
    await put(checkpoint, { small: 'hello', big: randomBytes(200_000) })
    await checkpoint.close()
    const [pack] = fixture.stored('pack')
    const file = pack ?? ''
    const bytes = readFileSync(file)
    for (const at of [0, 5, bytes.length - 1]) {
      const bad = Buffer.from(bytes)
      bad[at] = (bad[at] ?? 0) ^ 1
      writeFileSync(file, bad)
      await expect(fixture.filesAt(2)).rejects.toMatchObject({ kind: 'internal', code: 'checkpoint_damaged' })
    }
    writeFileSync(file, bytes)
    expect(await fixture.filesAt(2)).toMatchObject({ small: 'hello' })
  })

  it('still opens when a pack is lost, and fails only for what was in it', async () => {
    const first = await fixture.store.open('s', 1)
    await put(first, { lost: 'lost' })
    await first.close()
    const lost = fixture.stored('pack')
    const second = await fixture.store.open('s', 2)
    await put(second, { kept: 'kept' })
    await second.close()
    for (const name of fixture.stored('pack').filter((pack) => readFileSync(pack, 'utf8') === 'lost')) {
      rmSync(name)
    }
    expect(lost).toHaveLength(1)
    const third = await fixture.store.open('s', 3)
    expect((await contentOf(third, sha256(Buffer.from('kept')))).toString()).toBe('kept')
    await expect(contentOf(third, sha256(Buffer.from('lost')))).rejects.toMatchObject({ code: 'checkpoint_damaged' })
    await put(third, { lost: 'found' })
    await third.close()
    expect(await fixture.filesAt(4)).toEqual({ lost: 'found', kept: 'kept' })
  })

  it('says so when the only manifest is damaged', async () => {
    const checkpoint = await fixture.store.open('s', 1)
    await put(checkpoint, { a: '1' })
    await checkpoint.close()
    writeFileSync(fixture.stored('manifest')[0] ?? '', 'rubbish\n')
    await expect(fixture.store.open('s', 2)).rejects.toMatchObject({ kind: 'internal', code: 'checkpoint_damaged' })
    await fixture.store.remove('s', 99)
    expect(await fixture.filesAt(2)).toEqual({})
  })

  // Checked: if a part of a snapshot counts without the rest, half of the files are lost without a word.
  it('does not take a part of a snapshot for the whole', async () => {
    const checkpoint = await fixture.store.open('s', 1)
    await put(checkpoint, Object.fromEntries(Array.from({ length: 4500 }, (_, i) => [`f${i}`, String(i % 7)])))
    await checkpoint.close()
    const [manifest = ''] = fixture.stored('manifest')
    const lines = readFileSync(manifest, 'utf8').trimEnd().split('\n')
    expect(lines.length).toBeGreaterThan(2)
    expect(await fixture.filesAt(2)).toMatchObject({ f0: '0', f2000: '5', f4499: '5' })
    for (const kept of [1, lines.length - 1]) {
      writeFileSync(manifest, `${lines.slice(0, kept).join('\n')}\n`)
      await expect(fixture.store.open('s', 3)).rejects.toMatchObject({ code: 'checkpoint_damaged' })
    }
  })

  it('shows the state before or after the last commit, wherever the writing stopped', async () => {
    const checkpoint = await fixture.store.open('s', 1)
    await put(checkpoint, { a: '1', b: '1' })
    const before = { manifest: fixture.weight('manifest'), pack: fixture.weight('pack') }
    await put(checkpoint, { a: '22', c: '2' }, ['b'])
    const after = { manifest: fixture.weight('manifest'), pack: fixture.weight('pack') }
    await checkpoint.close()
    const old = { a: '1', b: '1' }
    const fresh = { a: '22', c: '2' }
    const cut = async (manifest: number, pack: number) => {
      const copy = temporaryFolder()
      cpSync(fixture.dir, copy, { recursive: true })
      truncateSync(fixture.stored('manifest', copy)[0] ?? '', manifest)
      truncateSync(fixture.stored('pack', copy)[0] ?? '', pack)
      const cutStore = fixture.storeOf(MB, copy)
      const found = await fixture.filesAt(2, 's', cutStore)
      const next = await cutStore.open('s', 3)
      await put(next, { next: 'n' })
      await next.close()
      expect(await fixture.filesAt(4, 's', cutStore)).toEqual({ ...found, next: 'n' })
      rmSync(copy, { recursive: true })
      return found
    }
    for (let bytes = before.pack; bytes <= after.pack; bytes++) expect(await cut(before.manifest, bytes)).toEqual(old)
    for (let bytes = before.manifest; bytes < after.manifest; bytes++) {
      expect(await cut(bytes, after.pack)).toEqual(old)
    }
    expect(await cut(after.manifest, after.pack)).toEqual(fresh)
    expect(await cut(after.manifest, after.pack - 1)).toEqual(old)
    // Hundreds of commits, each of which waits for the disk.
  }, 300_000)

  it('ignores a tail of zeros and half a manifest that was never finished', async () => {
    const checkpoint = await fixture.store.open('s', 1)
    await put(checkpoint, { a: '1' })
    await checkpoint.close()
    const file = fixture.stored('manifest')[0] ?? ''
    writeFileSync(file, Buffer.concat([readFileSync(file), Buffer.alloc(4096)]))
    writeFileSync(join(fixture.sessionDir(), '7-1.tmp'), readFileSync(file).subarray(0, 20))
    expect(await fixture.filesAt(2)).toEqual({ a: '1' })
  })

  it('says so when the disk refuses, and goes on when it no longer does', async () => {
    const checkpoint = await fixture.store.open('s', 1)
    await put(checkpoint, { a: '1' })
    await checkpoint.close()
    const folder = fixture.sessionDir()
    const next = await fixture.store.open('s', 2)
    rmSync(folder, { recursive: true })
    writeFileSync(folder, 'in the way')
    await expect(put(next, { b: '2' })).rejects.toMatchObject({ kind: 'unavailable', code: 'checkpoint_failed' })
    rmSync(folder)
    await next.close()
    const again = await fixture.store.open('s', 3)
    await put(again, { c: '3' })
    await again.close()
    expect(await fixture.filesAt(4)).toEqual({ c: '3' })
  })
})

describe('kill -9', () => {
  it('loses no acknowledged commit and mixes none, whenever the writer dies', async () => {
    const code = `
      import { openCheckpointStore } from ${JSON.stringify(join(import.meta.dirname, 'checkpoint-files.ts'))}
      import { silentLogger as logger } from ${JSON.stringify(join(import.meta.dirname, '../../lib/logger.ts'))}
      import { randomBytes } from 'node:crypto'
      process.stdin.resume().on('end', () => process.exit())
      const [dir, epoch] = process.argv.slice(1)
      const checkpoint = await openCheckpointStore({ dir, maxSessionBytes: 1e9, logger }).open('s', Number(epoch))
      const file = async (path, content) => {
        return { path, type: 'file', mode: 0, mtimeMs: 0, ...(await checkpoint.addBlob(Buffer.from(content))) }
      }
      for (let i = checkpoint.entries.get('count')?.mtimeMs ?? 0; ; i++) {
        const put = [await file('a', 'a' + i), await file('b', 'b' + i), await file('junk', randomBytes(150_000))]
        put.push({ path: 'count', type: 'dir', mode: 0, mtimeMs: i })
        await checkpoint.commit({ put, deleted: [] })
        process.stdout.write(i + '\\n')
      }`
    let acknowledged = -1
    for (let epoch = 1; epoch <= 6; epoch++) {
      const args = ['--input-type=module', '--eval', code, fixture.dir, String(epoch)]
      const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
      let out = ''
      child.stdout.on('data', (chunk) => {
        out += chunk
      })
      await expect.poll(() => out.split('\n').length, { interval: 1 }).toBeGreaterThan(5 + epoch * 3)
      child.kill('SIGKILL')
      await once(child, 'close')
      acknowledged = Number(out.trimEnd().split('\n').at(-1))
      const checkpoint = await fixture.store.open('s', epoch)
      const count = checkpoint.entries.get('count')?.mtimeMs ?? -1
      expect(count).toBeGreaterThanOrEqual(acknowledged)
      expect(await files(checkpoint)).toMatchObject({ a: `a${count}`, b: `b${count}` })
      await checkpoint.close()
    }
  }, 60_000)
})
