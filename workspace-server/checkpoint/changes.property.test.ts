import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FakeOwner } from '../fake-owner.ts'
import type { WorkspaceEntry } from '../protocol.ts'

const names = ['a', 'b', 'c', 'ü', 'd d']
const path = fc.array(fc.constantFrom(...names), { minLength: 1, maxLength: 3 }).map((parts) => parts.join('/'))
const content = fc.oneof(fc.constantFrom('', '1', '2'), fc.string({ maxLength: 10 }), fc.constant('x'.repeat(300_000)))

type Step = (root: string) => void
const step: fc.Arbitrary<[string, Step]> = fc.oneof(
  fc
    .tuple(path, content)
    .map(([p, c]): [string, Step] => [`write ${p} ${c.length}`, (r) => fs.writeFileSync(join(r, p), c)]),
  fc.tuple(path, content).map(([p, c]): [string, Step] => [`append ${p}`, (r) => fs.appendFileSync(join(r, p), c)]),
  path.map((p): [string, Step] => [`mkdir ${p}`, (r) => fs.mkdirSync(join(r, p), { recursive: true })]),
  path.map((p): [string, Step] => [`rm ${p}`, (r) => fs.rmSync(join(r, p), { recursive: true, force: true })]),
  fc.tuple(path, path).map(([p, q]): [string, Step] => [`mv ${p} ${q}`, (r) => fs.renameSync(join(r, p), join(r, q))]),
  fc.tuple(path, path).map(([p, q]): [string, Step] => [`ln ${p} ${q}`, (r) => fs.linkSync(join(r, p), join(r, q))]),
  fc.tuple(path, path).map(([p, q]): [string, Step] => [`ln -s ${p} ${q}`, (r) => fs.symlinkSync(p, join(r, q))]),
  fc
    .tuple(path, fc.constantFrom(0o644, 0o755, 0o600))
    .map(([p, m]): [string, Step] => [`chmod ${p} ${m}`, (r) => chmodNoFollow(join(r, p), m)]),
  fc
    .tuple(path, fc.constantFrom(1, 2, 3))
    .map(([p, t]): [string, Step] => [`touch ${p} ${t}`, (r) => fs.lutimesSync(join(r, p), t, t)])
)
const look = fc.constantFrom('stored', 'lost', 'full')
const script = fc.array(fc.tuple(fc.array(step, { maxLength: 12 }), look), { minLength: 1, maxLength: 6 })

function chmodNoFollow(file: string, mode: number): void {
  if (!fs.lstatSync(file).isSymbolicLink()) fs.chmodSync(file, mode)
}

/** Paths that do not exist in the tree are intended. */
function attempt(work: () => void): void {
  try {
    work()
  } catch {}
}

function treeOf(root: string, folder = '', tree = new Map<string, WorkspaceEntry>()): Map<string, WorkspaceEntry> {
  for (const name of fs.readdirSync(join(root, folder))) {
    const found = join(folder, name)
    const stats = fs.lstatSync(join(root, found))
    const mtimeMs = Math.round(stats.mtimeMs * 1000) / 1000
    const mode = stats.mode & 0o7777
    if (stats.isSymbolicLink())
      tree.set(found, { path: found, type: 'link', target: fs.readlinkSync(join(root, found)), mtimeMs })
    else if (stats.isDirectory()) {
      tree.set(found, { path: found, type: 'dir', mode, mtimeMs })
      treeOf(root, found, tree)
    } else {
      const hash = createHash('sha256')
        .update(fs.readFileSync(join(root, found)))
        .digest('hex')
      tree.set(found, { path: found, type: 'file', mode, mtimeMs, size: stats.size, hash })
    }
  }
  return tree
}

class Model {
  readonly entries = new Map<string, WorkspaceEntry>()
  readonly #owner: FakeOwner
  #ack = 0

  constructor(owner: FakeOwner) {
    this.#owner = owner
  }

  async look(kind: string): Promise<void> {
    if (kind === 'lost') {
      await this.#owner.changes({ ack: this.#ack })
      return
    }
    for (let more = true; more; ) {
      const reply = await this.#owner.changes({ ack: this.#ack, full: kind === 'full' })
      for (const gone of reply.deleted) this.entries.delete(gone)
      for (const { data, ...entry } of reply.put) {
        const parent = entry.path.slice(0, Math.max(0, entry.path.lastIndexOf('/')))
        if (parent !== '') expect(this.entries.get(parent)?.type).toBe('dir')
        if (entry.type === 'file' && data !== undefined)
          expect(createHash('sha256').update(Buffer.from(data, 'base64')).digest('hex')).toBe(entry.hash)
        this.entries.set(entry.path, entry)
      }
      this.#ack = reply.seq
      more = reply.more
    }
  }
}

describe.each(['with notices', 'without notices'])('deltas applied to a model give the tree, %s', (kind) => {
  it('after any sequence of operations', async () => {
    const owner = await FakeOwner.start()
    // A file is where the server needs a folder, so it can't know whether it has seen all notices, and must scan everything.
    if (kind === 'without notices') fs.writeFileSync(join(owner.state, 'sync'), '')
    const model = new Model(owner)
    const property = fc.asyncProperty(script, async (rounds) => {
      for (const [steps, look] of rounds) {
        for (const [what, act] of steps) {
          attempt(() => act(owner.root))
          // Without `full`, a link that is created, written through and removed between two scans is missed; this is a known limit.
          if (what.startsWith('ln ')) await model.look('stored')
        }
        await model.look(look)
      }
      await model.look('stored')
      expect(new Map([...model.entries].sort())).toEqual(new Map([...treeOf(owner.root)].sort()))
    })
    try {
      await fc.assert(property, { numRuns: 200, endOnFailure: true })
    } finally {
      await owner.stop()
    }
  }, 300_000)
})
