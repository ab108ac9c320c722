import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { WorkspaceEntry } from '../../../workspace-server/protocol.ts'
import { CheckpointFixture, chunked, contentOf, fileEntry } from './checkpoint-files.fixture.ts'

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
        await fixture.store.remove(session)
      }),
      { numRuns: 40 }
    )
  }, 60_000)
})
