import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { WorkspaceEntry } from '../../../workspace-server/protocol.ts'
import { silentLogger } from '../../lib/logger.ts'
import type { Checkpoint, StoredChangeSet } from '../checkpoint-store.ts'
import { CheckpointFixture, chunked, contentOf, fileEntry, MB, put, sha256 } from './checkpoint-files.fixture.ts'
import { openCheckpointStore } from './checkpoint-files.ts'

let fixture: CheckpointFixture
beforeEach(() => {
  fixture = new CheckpointFixture()
})
afterEach(() => fixture.dispose())

describe('random histories', () => {
  const path = fc.constantFrom('a', 'b', 'c/d', '\n', '\0b64:eA==', '__proto__')
  const content = fc.oneof(
    { weight: 5, arbitrary: fc.uint8Array({ maxLength: 20 }) },
    { weight: 1, arbitrary: fc.nat(255).map((byte) => new Uint8Array(300_000).fill(byte)) }
  )
  const step = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant('commit' as const),
        put: fc.array(fc.record({ path, content, streamed: fc.boolean() }), { maxLength: 4 }),
        dirs: fc.array(path, { maxLength: 2 }),
        deleted: fc.array(path, { maxLength: 3 })
      })
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('reopen' as const), bump: fc.nat(2) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('wasted' as const), content }) }
  )

  it('come back as they were committed', async () => {
    let run = 0
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
        const session = `run-${run++}`
        const model = new Map<string, { entry: WorkspaceEntry; content?: Uint8Array }>()
        let epoch = 1
        let checkpoint = await fixture.store.open(session, epoch)
        const compare = async () => {
          expect(new Map(checkpoint.entries)).toEqual(new Map([...model].map(([key, { entry }]) => [key, entry])))
          for (const { entry, content: expected } of model.values()) {
            if (entry.type !== 'file' || !expected) continue
            expect((await contentOf(checkpoint, entry.hash)).equals(expected)).toBe(true)
          }
        }
        for (const each of steps) {
          if (each.kind === 'wasted') await checkpoint.addBlob(each.content)
          if (each.kind === 'reopen') {
            await checkpoint.close()
            epoch += each.bump
            checkpoint = await fixture.store.open(session, epoch)
            await compare()
          }
          if (each.kind !== 'commit') continue
          const entries: WorkspaceEntry[] = []
          for (const gone of each.deleted) model.delete(gone)
          for (const dirPath of each.dirs) {
            const entry: WorkspaceEntry = { path: dirPath, type: 'dir', mode: 0o700, mtimeMs: 0 }
            entries.push(entry)
            model.set(dirPath, { entry })
          }
          for (const file of each.put) {
            await checkpoint.addBlob(file.streamed ? chunked(file.content, 99_999) : file.content)
            const entry = fileEntry(file.path, file.content)
            entries.push(entry)
            model.set(file.path, { entry, content: file.content })
          }
          await checkpoint.commit({ put: entries, deleted: each.deleted })
        }
        await compare()
        await checkpoint.close()
        checkpoint = await fixture.store.open(session, epoch + 1)
        await compare()
        await checkpoint.close()
        await fixture.store.remove(session, Number.MAX_SAFE_INTEGER)
      }),
      { numRuns: 40 }
    )
  }, 60_000)
})

describe('change sets', () => {
  const entry = (path: string, text: string) => fileEntry(path, Buffer.from(text))
  const setOf = (id: string, path: string, before: string | null, after: string | null): StoredChangeSet => ({
    id,
    kind: 'version',
    at: Date.now(),
    about: { by: 'person' },
    changes: [
      { path, before: before === null ? null : entry(path, before), after: after === null ? null : entry(path, after) }
    ]
  })
  const text = async (checkpoint: Checkpoint, content: string) =>
    (await contentOf(checkpoint, sha256(Buffer.from(content)))).toString()
  /** Writes a file, with the version that says so. */
  const edit = async (checkpoint: Checkpoint, id: string, path: string, before: string | null, after: string) => {
    await checkpoint.addBlob(Buffer.from(after))
    await checkpoint.commit({ put: [entry(path, after)], deleted: [], keep: [setOf(id, path, before, after)] })
  }

  it('keep the content of both sides, through compactions and owners, until they are dropped', async () => {
    const big = (letter: string) => letter.repeat(700_000)
    let checkpoint = await fixture.store.open('s', 1)
    await edit(checkpoint, 'v0', 'a', null, big('0'))
    for (let i = 1; i < 8; i++) await edit(checkpoint, `v${i}`, 'a', big(`${i - 1}`), big(`${i}`))
    const sets = structuredClone([...checkpoint.changeSets.values()])
    await checkpoint.close()
    checkpoint = await fixture.store.open('s', 2)
    expect([...checkpoint.changeSets.values()]).toEqual(sets)
    expect(await text(checkpoint, big('3'))).toBe(big('3'))
    const heavy = fixture.weight('pack')
    await checkpoint.commit({ put: [], deleted: [], drop: ['v0', 'v1', 'v2', 'v3', 'v4', 'v5', 'v6', 'v7'] })
    expect(checkpoint.has(sha256(Buffer.from(big('3'))))).toBe(false)
    await put(checkpoint, { b: 'b' })
    await checkpoint.close()
    expect(fixture.weight('pack')).toBeLessThan(heavy / 3)
    expect(await fixture.filesAt(3)).toEqual({ a: big('7'), b: 'b' })
  })

  it('grow if they are versions, and are replaced if they wait for a decision', async () => {
    let checkpoint = await fixture.store.open('s', 1)
    await edit(checkpoint, 'v', 'a', null, 'one')
    await edit(checkpoint, 'v', 'b', null, 'two')
    await edit(checkpoint, 'v', 'a', 'one', 'three')
    await checkpoint.addBlob(Buffer.from('fork'))
    await checkpoint.commit({ put: [], deleted: [], keep: [{ ...setOf('o', 'a', 'three', 'three'), kind: 'open' }] })
    await checkpoint.commit({ put: [], deleted: ['b'], keep: [setOf('v', 'b', 'two', null)] })
    await checkpoint.addBlob(Buffer.from('fork'))
    await checkpoint.commit({ put: [], deleted: [], keep: [{ ...setOf('o', 'c', null, 'fork'), kind: 'open' }] })
    for (const epoch of [2, 3]) {
      await checkpoint.close()
      checkpoint = await fixture.store.open('s', epoch)
      expect(checkpoint.changeSets.get('v')?.changes).toEqual(setOf('v', 'a', null, 'three').changes)
      expect(checkpoint.changeSets.get('o')?.changes).toEqual(setOf('o', 'c', null, 'fork').changes)
      expect([checkpoint.has(sha256(Buffer.from('one'))), checkpoint.has(sha256(Buffer.from('two')))]).toEqual([
        false,
        false
      ])
      expect(await text(checkpoint, 'fork')).toBe('fork')
      await put(checkpoint, { d: `${epoch}` })
    }
    // A kept preview: the open set becomes a version, and is the newest one.
    await edit(checkpoint, 'later', 'e', null, 'e')
    const kept = {
      put: [entry('c', 'fork')],
      deleted: [],
      drop: ['o'],
      keep: [{ ...setOf('o', 'c', null, 'fork'), at: 5 }]
    }
    await checkpoint.commit(kept)
    expect([...checkpoint.changeSets.keys()]).toEqual(['v', 'later', 'o'])
    await checkpoint.close()
  })

  it('may have many changes', async () => {
    const checkpoint = await fixture.store.open('s', 1)
    const dirs = Array.from({ length: 5000 }, (_, i) => {
      return { path: `d${i}`, before: null, after: { path: `d${i}`, type: 'dir', mode: 0o755, mtimeMs: 1 } as const }
    })
    const open: StoredChangeSet = { id: 'o', kind: 'open', at: 1, about: { by: 'review' }, changes: dirs }
    const version: StoredChangeSet = { ...open, id: 'v', kind: 'version' }
    await checkpoint.commit({ put: [], deleted: [], keep: [open, version] })
    await checkpoint.close()
    for (const epoch of [2, 3]) {
      const again = await fixture.store.open('s', epoch)
      expect([...again.changeSets.values()]).toEqual([open, version])
      await put(again, { a: `${epoch}` })
      await again.close()
    }
  })

  it('are refused whole if content is missing, and leave the files as they are', async () => {
    const checkpoint = await fixture.store.open('s', 1)
    await put(checkpoint, { a: 'a' })
    const missing = checkpoint.commit({ put: [], deleted: ['a'], keep: [setOf('v', 'a', 'never stored', null)] })
    await expect(missing).rejects.toMatchObject({ code: 'checkpoint_content_missing' })
    expect([checkpoint.entries.size, checkpoint.changeSets.size]).toEqual([1, 0])
    await checkpoint.close()
  })

  it('are marked so that an older program refuses them, and only then', async () => {
    const checkpoint = await fixture.store.open('s', 1)
    await put(checkpoint, { a: 'a' })
    const versions = () =>
      [...readFileSync(fixture.stored('manifest')[0] ?? '', 'utf8').matchAll(/"v":(\d)/g)].map((m) => m[1])
    expect(versions()).toEqual(['1'])
    await edit(checkpoint, 'v', 'a', 'a', 'b')
    expect(versions()).toEqual(['1', '3'])
    await checkpoint.close()
  })

  describe('are thinned by size and age', () => {
    const content = (i: number) => `${i}`.padEnd(30_000, '-')
    const limits = () => ({ dir: fixture.dir, maxSessionBytes: 64 * MB, historyMs: 1000_000, logger: silentLogger })
    const waiting = async (checkpoint: Checkpoint, bytes: string) => {
      await checkpoint.addBlob(Buffer.from(bytes))
      const open: StoredChangeSet = { ...setOf('open', 'o', null, bytes), kind: 'open' }
      await checkpoint.commit({ put: [], deleted: [], keep: [open] })
    }

    // Checked: without `thin`, all versions stay.
    it('the oldest versions first and never one that waits for a decision', async () => {
      const store = openCheckpointStore({ ...limits(), maxHistoryBytes: 100_000 })
      let checkpoint = await store.open('s', 1)
      await waiting(checkpoint, content(99))
      await edit(checkpoint, 'v0', 'a', null, content(0))
      for (let i = 1; i < 4; i++) await edit(checkpoint, `v${i}`, 'a', content(i - 1), content(i))
      expect([[...checkpoint.changeSets.keys()], checkpoint.isThinned]).toEqual([
        ['open', 'v0', 'v1', 'v2', 'v3'],
        false
      ])
      for (let i = 4; i < 7; i++) await edit(checkpoint, `v${i}`, 'a', content(i - 1), content(i))
      await checkpoint.close()
      checkpoint = await store.open('s', 2)
      expect([[...checkpoint.changeSets.keys()], checkpoint.isThinned]).toEqual([['open', 'v4', 'v5', 'v6'], true])
      expect(checkpoint.has(sha256(Buffer.from(content(2))))).toBe(false)
      const old = { ...setOf('old', 'b', null, 'b'), at: Date.now() - 2000_000 }
      await checkpoint.addBlob(Buffer.from('b'))
      await checkpoint.commit({ put: [entry('b', 'b')], deleted: [], keep: [old] })
      expect(checkpoint.changeSets.has('old')).toBe(false)
      expect(checkpoint.entries.has('b')).toBe(true)
      await checkpoint.close()
    })

    it('whatever waits for a decision, and for as long as it waits', async () => {
      const store = openCheckpointStore({ ...limits(), maxHistoryBytes: 100_000 })
      let checkpoint = await store.open('s', 1)
      for (let i = 1; i < 4; i++) await edit(checkpoint, `v${i}`, 'a', i === 1 ? null : content(i - 1), content(i))
      const all = ['v1', 'v2', 'v3']
      // Its content takes all that versions may take, and a version names a part of it too.
      await waiting(checkpoint, 'x'.repeat(200_000))
      await waiting(checkpoint, content(1))
      await waiting(checkpoint, 'y'.repeat(200_000))
      await checkpoint.close()
      checkpoint = await store.open('s', 2)
      expect([...checkpoint.changeSets.keys()]).toEqual([...all, 'open'])
      // The list of its changes takes more than versions may take.
      const dirs = Array.from({ length: 50_000 }, (_, i) => {
        const path = `${'long/'.repeat(60)}${i}`
        return { path, before: null, after: { path, type: 'dir', mode: 0o755, mtimeMs: 1 } as const }
      })
      const open: StoredChangeSet = { ...setOf('open', 'o', null, null), kind: 'open', changes: dirs }
      await checkpoint.commit({ put: [], deleted: [], keep: [open] })
      await checkpoint.commit({ put: [], deleted: [], drop: ['open'] })
      expect([[...checkpoint.changeSets.keys()], checkpoint.isThinned]).toEqual([all, false])
      await checkpoint.close()
    })

    // Checked: if parts are thinned in the order of their age, the first two versions go before them.
    it('after every part, also one that the commit adds, and says nothing of parts', async () => {
      const store = openCheckpointStore({ ...limits(), maxHistoryBytes: 100_000 })
      let checkpoint = await store.open('s', 1)
      for (let i = 0; i < 3; i++) await edit(checkpoint, `v${i}`, 'a', i === 0 ? null : content(i - 1), content(i))
      const part = async (id: string, text: string) => {
        await checkpoint.addBlob(Buffer.from(text))
        await checkpoint.commit({ put: [], deleted: [], keep: [{ ...setOf(id, 'p', null, text), kind: 'part' }] })
      }
      await part('p1', content(50))
      await checkpoint.close()
      checkpoint = await store.open('s', 2)
      expect([...checkpoint.changeSets.keys()]).toEqual(['v0', 'v1', 'v2', 'p1'])
      expect(await text(checkpoint, content(50))).toBe(content(50))
      await part('p2', 'x'.repeat(200_000))
      expect([[...checkpoint.changeSets.keys()], checkpoint.isThinned]).toEqual([['v0', 'v1', 'v2'], false])
      expect(checkpoint.has(sha256(Buffer.from(content(50))))).toBe(false)
      await checkpoint.close()
    })

    it('but never by the commit that adds them, and the newest stays', async () => {
      const store = openCheckpointStore({ ...limits(), maxHistoryBytes: 10_000 })
      let checkpoint = await store.open('s', 1)
      await edit(checkpoint, 'v0', 'a', null, content(0))
      const both = [setOf('v1', 'a', content(0), content(1)), setOf('v2', 'a', content(1), content(2))]
      for (const i of [1, 2]) await checkpoint.addBlob(Buffer.from(content(i)))
      await checkpoint.commit({ put: [entry('a', content(2))], deleted: [], keep: both })
      expect([[...checkpoint.changeSets.keys()], checkpoint.isThinned]).toEqual([['v1', 'v2'], true])
      await checkpoint.close()
      checkpoint = await store.open('s', 2)
      await put(checkpoint, { b: 'b' })
      expect([...checkpoint.changeSets.keys()]).toEqual(['v2'])
      expect(await text(checkpoint, content(1))).toBe(content(1))
      await checkpoint.close()
    })
  })
})
