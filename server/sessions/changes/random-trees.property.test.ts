import * as fs from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { silentLogger } from '../../lib/logger.ts'
import type { Checkpoint, StoredChangeSet } from '../../storage/checkpoint-store.ts'
import { openCheckpointStore } from '../../storage/checkpoints/checkpoint-files.ts'
import { fakeCheckpoint } from '../../storage/fake-checkpoint.ts'
import { WorkspaceFiles } from '../sandboxes/workspace-files.ts'
import { hashOf } from './changed-files.ts'
import { insideSandbox, rawPath, treeOf } from './inside-sandbox.fixture.ts'
import { planRevert, type RevertScope } from './revert-plan.ts'

const MB = 1024 * 1024
const NAMES = ['a', 'b', 'c', 'd d', '\xc3\xbc', '\xff\xfe', '__proto__']
const path = fc.array(fc.constantFrom(...NAMES), { minLength: 1, maxLength: 3 }).map((parts) => parts.join('/'))
const content = fc.oneof(fc.constantFrom('', '1', '2'), fc.string({ maxLength: 10 }), fc.constant('x'.repeat(300_000)))

type Step = [name: string, run: (root: string) => void]
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.tuple(path, content).map(([p, c]): Step => [`write ${p}`, (r) => write(rawPath(r, p), c)])
  },
  { weight: 2, arbitrary: path.map((p): Step => [`mkdir ${p}`, (r) => makeFolder(r, p)]) },
  { weight: 2, arbitrary: path.map((p): Step => [`rm ${p}`, (r) => remove(r, p)]) },
  fc.tuple(path, path).map(([p, q]): Step => [`mv ${p} ${q}`, (r) => fs.renameSync(rawPath(r, p), rawPath(r, q))]),
  fc.tuple(path, path).map(([p, q]): Step => {
    return [`ln -s ${p} ${q}`, (r) => fs.symlinkSync(Buffer.from(p, 'latin1'), rawPath(r, q))]
  }),
  fc.tuple(path, fc.constantFrom(0o644, 0o755, 0o700, 0o555)).map(([p, mode]): Step => {
    return [`chmod ${p} ${mode}`, (r) => !isLink(r, p) && fs.chmodSync(rawPath(r, p), mode)]
  }),
  fc.tuple(path, content).map(([p, c]): Step => {
    const short = (root: string) => {
      write(rawPath(root, p), c)
      fs.unlinkSync(rawPath(root, p))
    }
    return [`make and delete ${p}`, short]
  })
)
const rounds = fc.array(fc.array(step, { minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 5 })

function write(file: Buffer, text: string): void {
  fs.mkdirSync(Buffer.from(file.subarray(0, file.lastIndexOf(47))), { recursive: true })
  fs.writeFileSync(file, text)
}

const makeFolder = (root: string, p: string) => void fs.mkdirSync(rawPath(root, p), { recursive: true })
const isLink = (root: string, p: string) => fs.lstatSync(rawPath(root, p)).isSymbolicLink()

/** `rmSync` can't delete names that are not UTF-8. */
function remove(root: string, p: string): void {
  const full = rawPath(root, p)
  const isFolder = fs.lstatSync(full).isDirectory()
  for (const name of isFolder ? fs.readdirSync(full, 'latin1') : []) remove(root, `${p}/${name}`)
  if (isFolder) fs.rmdirSync(full)
  else fs.unlinkSync(full)
}

let folder: string
beforeEach(() => {
  folder = temporaryFolder()
})
afterEach(() => fs.rmSync(folder, { recursive: true, force: true }))

class Session {
  readonly root: string
  readonly checkpoint: Checkpoint
  readonly files: WorkspaceFiles
  readonly trees = [{}]
  readonly ids: string[] = []

  constructor(at: string, checkpoint: Checkpoint) {
    const { root, connection } = insideSandbox(at, 'workspace')
    this.root = root
    this.checkpoint = checkpoint
    this.files = new WorkspaceFiles(connection, checkpoint)
  }

  async round(steps: Step[]): Promise<void> {
    for (const [, run] of steps) {
      try {
        run(this.root)
      } catch {} // Paths that do not exist in the tree are intended.
    }
    const id = `v${this.ids.length}`
    await this.files.sync({ full: true, version: { id, about: { by: 'call', callId: id } } })
    if (!this.checkpoint.changeSets.has(id)) return
    this.ids.push(id)
    this.trees.push(treeOf(this.root))
  }

  async revert(of: string, scope: RevertScope, as: string): Promise<StoredChangeSet | null> {
    const { changes } = planRevert(this.checkpoint, of, scope)
    return this.files.apply({ changes, version: { id: as, about: { by: 'revert', of, scope } } })
  }
}

/** Every way back and forth between the versions of a session. */
async function checkAllWays(session: Session, pick: number): Promise<void> {
  const { root, checkpoint, trees, ids, files } = session
  const from = pick % Math.max(1, ids.length)
  const [version, then, last] = [ids[from], trees[from], trees.at(-1)]
  if (version === undefined) return
  const kept = ids.slice(from).map((id) => checkpoint.changeSets.get(id)?.changes ?? [])
  await session.revert(version, 'since', 'rewind')
  expect(treeOf(root), 'rewound').toEqual(then)
  if (!checkpoint.changeSets.has('rewind')) return expect(then).toEqual(last) // It all came back to the same.
  await session.revert('rewind', 'one', 'again')
  expect(treeOf(root), 'the rewind undone').toEqual(last)
  await session.revert('again', 'one', 'back')
  expect(treeOf(root), 'rewound once more').toEqual(then)
  for (const [i, changes] of kept.entries()) {
    await files.apply({ changes, version: { id: `kept ${i}`, about: { by: 'review' } } })
    expect(treeOf(root), `version ${i} kept`).toEqual(trees[from + i + 1])
  }
  await files.sync({ full: true })
  const unknown = [...checkpoint.changeSets.values()].filter(({ about }) => about.by === 'background')
  expect(unknown, 'what was applied is not reported as new').toEqual([])
}

it('keeping, undoing and rewinding give byte-identical trees, for 200 random trees', async () => {
  let run = 0
  await fc.assert(
    fc.asyncProperty(rounds, fc.nat(), async (script, pick) => {
      const session = new Session(join(folder, `run-${run++}`), fakeCheckpoint())
      for (const steps of script) await session.round(steps)
      await checkAllWays(session, pick)
      const restored = insideSandbox(join(folder, `restored-${run}`), 'workspace')
      await new WorkspaceFiles(restored.connection, session.checkpoint).restore()
      expect(treeOf(restored.root), 'restored').toEqual(treeOf(session.root))
    }),
    { numRuns: 200 }
  )
}, 120_000)

it('does so with a sparse file of 50 MB, at the cost of its content', async () => {
  const dir = join(folder, 'checkpoints')
  const store = openCheckpointStore({ dir, maxSessionBytes: 64 * MB, logger: silentLogger })
  const session = new Session(join(folder, 'sparse'), await store.open('s', 1))
  const sparse = (root: string, text: string) => {
    const fd = fs.openSync(rawPath(root, 'big'), 'w')
    fs.ftruncateSync(fd, 50 * MB)
    fs.writeSync(fd, text, 30 * MB)
    fs.closeSync(fd)
  }
  await session.round([['one', (root) => sparse(root, 'one')]])
  await session.round([['two', (root) => sparse(root, 'two')]])
  await session.round([['mv', (root) => fs.renameSync(rawPath(root, 'big'), rawPath(root, 'moved'))]])
  await checkAllWays(session, 1)
  expect(fs.statSync(join(session.root, 'moved')).blocks * 512).toBeLessThan(MB)
  await session.checkpoint.close()
  expect(await store.bytes()).toBeLessThan(MB)
})

it('binds the hash to every path and side', () => {
  const entry = { path: 'a', type: 'file', mode: 0o644, mtimeMs: 1, size: 1, hash: 'f'.repeat(64) } as const
  const sets = [
    [{ path: 'a', before: null, after: entry }],
    [{ path: 'a', before: entry, after: null }],
    [{ path: 'b', before: null, after: entry }],
    [{ path: 'a', before: null, after: { ...entry, mode: 0o755 } }],
    [{ path: 'a', before: null, after: { ...entry, hash: 'e'.repeat(64) } }],
    []
  ]
  expect(new Set(sets.map(hashOf)).size).toBe(sets.length)
  expect(hashOf([{ path: 'a', before: null, after: { ...entry, mtimeMs: 2 } }])).toBe(hashOf(sets[0] ?? []))
})
