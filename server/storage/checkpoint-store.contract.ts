/** The contract that every CheckpointStore must pass; each adapter's test runs it. */
import { randomBytes, randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { WorkspaceEntry } from '../../workspace-server/protocol.ts'
import type { Checkpoint, CheckpointDelta, CheckpointStore, StoredChangeSet } from './checkpoint-store.ts'
import {
  chunked,
  contentOf,
  fileEntry,
  files as filesOf,
  LOST_ANSWER,
  put,
  sha256
} from './checkpoints/checkpoint-files.fixture.ts'

export interface CheckpointsUnderTest {
  /** Two instances on the same files. */
  first: CheckpointStore
  second: CheckpointStore
  /** Another instance takes the session over: a higher epoch. */
  takeOver(sessionId: string): Promise<number>
  /** The session store does not answer the next change of what counts, whether it makes the change or not. Undefined: it answers. */
  loseAnswer?(isMade: boolean | undefined): void
  dispose(): Promise<void>
}

type Files = Record<string, string>

export function describeCheckpointStore(name: string, open: () => Promise<CheckpointsUnderTest>, runs = 40): void {
  describe(`checkpoint store: ${name}`, () => {
    let under: CheckpointsUnderTest
    let id: string
    beforeAll(async () => {
      under = await open()
    })
    beforeEach(() => {
      id = `é"${randomUUID()}`
    })
    afterAll(() => under.dispose())

    const owner = async (store = under.first) => store.open(id, await under.takeOver(id))

    it('gives entries of every kind and their content to the next owner', async () => {
      const one = await owner()
      const big = randomBytes(3 * 1024 * 1024 + 17)
      const { hash } = await one.addBlob(chunked(big, 100_001))
      await one.addBlob(Buffer.from('hello'))
      await one.addBlob(new Uint8Array(0))
      await one.addBlob(chunked(Buffer.alloc(2_000_000), 65_536))
      const entries: WorkspaceEntry[] = [
        { path: 'd', type: 'dir', mode: 0o755, mtimeMs: 12.5 },
        { path: 'd/l', type: 'link', target: '../\0\ud800', mtimeMs: 2 },
        fileEntry('d/big', big),
        fileEntry('__proto__', Buffer.from('hello')),
        fileEntry('../../etc/passwd', new Uint8Array(0)),
        fileEntry('zeros', Buffer.alloc(2_000_000))
      ]
      await one.commit({ put: entries, deleted: [] })
      await one.close()
      const two = await owner(under.second)
      expect([...two.entries.values()]).toEqual(entries)
      expect((await contentOf(two, hash, 1000)).equals(big)).toBe(true)
      expect(await contentOf(two, sha256(new Uint8Array(0)))).toHaveLength(0)
      expect((await contentOf(two, sha256(Buffer.alloc(2_000_000)))).equals(Buffer.alloc(2_000_000))).toBe(true)
      expect(String((await two.readSmall([sha256(Buffer.from('hello'))]))[0])).toBe('hello')
      await two.close()
    })

    it('keeps a content as long as something names it', async () => {
      const one = await owner()
      const hash = sha256(Buffer.from('same'))
      await put(one, { a: 'same', b: 'same' })
      await put(one, { a: 'other' })
      expect(one.has(hash)).toBe(true)
      await put(one, {}, ['b'])
      expect(one.has(hash)).toBe(false)
      await expect(contentOf(one, hash)).rejects.toMatchObject({ kind: 'not-found' })
      await one.close()
    })

    it('refuses a commit without its content, and keeps the state before', async () => {
      const one = await owner()
      await put(one, { a: '1' })
      const refused = one.commit({ put: [fileEntry('b', Buffer.from('2'))], deleted: ['a'] })
      await expect(refused).rejects.toMatchObject({ code: 'checkpoint_content_missing' })
      expect(await filesOf(one)).toEqual({ a: '1' })
      await one.close()
      await expect(put(one, { a: '3' })).rejects.toMatchObject({ code: 'checkpoint_closed' })
      expect(await filesOf(await owner())).toEqual({ a: '1' })
    })

    it('lets no former owner change what counts', async () => {
      const old = await owner()
      await put(old, { a: '1' })
      const now = await owner(under.second)
      await put(now, { a: '2' })
      await expect(put(old, { a: 'stale' })).rejects.toMatchObject({ code: 'lease_lost' })
      expect(await filesOf(old)).toEqual({ a: '1' })
      await put(now, { b: '3' })
      await expect(put(old, { a: 'stale' })).rejects.toMatchObject({ code: 'lease_lost' })
      await old.close()
      expect(await filesOf(now)).toEqual({ a: '2', b: '3' })
      await now.close()
      expect(await filesOf(await owner())).toEqual({ a: '2', b: '3' })
    })

    it('keeps versions and open sets with both sides, and drops them', async () => {
      const one = await owner()
      await put(one, { a: 'old' })
      await one.addBlob(Buffer.from('new'))
      await one.addBlob(Buffer.from('draft'))
      const version = set('v1', 'version', 'a', 'old', 'new')
      const waiting = set('o1', 'open', 'a', 'new', 'draft')
      await one.commit({ put: [fileEntry('a', Buffer.from('new'))], deleted: [], keep: [version, waiting] })
      await one.close()
      const two = await owner(under.second)
      expect([...two.changeSets.values()]).toEqual([version, waiting])
      for (const text of ['old', 'new', 'draft'])
        expect(String(await contentOf(two, sha256(Buffer.from(text))))).toBe(text)
      await two.commit({ put: [], deleted: [], drop: ['o1'] })
      expect(two.has(sha256(Buffer.from('draft')))).toBe(false)
      await two.close()
      expect([...(await owner()).changeSets.keys()]).toEqual(['v1'])
    })

    it('removes an open session, which its owner notices', async () => {
      const epoch = await under.takeOver(id)
      const one = await under.first.open(id, epoch)
      await put(one, { a: '1' })
      expect(await under.second.has(id)).toBe(true)
      expect(await under.second.bytes([id])).toBeGreaterThan(0)
      await under.second.remove(id, epoch)
      expect(await under.first.has(id)).toBe(false)
      await expect(put(one, { a: '2' })).rejects.toMatchObject({ code: 'checkpoint_removed' })
      await one.close()
      expect((await owner()).entries.size).toBe(0)
    })

    it('lets no former owner remove a session', async () => {
      const old = await under.takeOver(id)
      await put(await under.first.open(id, old), { a: '1' })
      const now = await owner(under.second)
      await put(now, { a: '2' })
      await expect(under.first.remove(id, old)).rejects.toMatchObject({ code: 'lease_lost' })
      await put(now, { b: '3' })
      await now.close()
      expect(await filesOf(await owner())).toEqual({ a: '2', b: '3' })
    })

    it('stores content of conversations by session', async () => {
      const bytes = randomBytes(100_000)
      const hash = await under.first.putContent(id, bytes)
      expect(await under.first.putContent(id, bytes)).toBe(hash)
      expect((await under.second.getContent(id, hash))?.equals(bytes)).toBe(true)
      expect(await under.second.getContent(`${id}x`, hash)).toBeUndefined()
      expect(await under.second.getContent(id, '../x')).toBeUndefined()
    })

    it('counts the content of conversations once against the size of a session, until it is removed', async () => {
      const before = await under.first.bytes()
      const image = randomBytes(100_000)
      for (const store of [under.first, under.second, under.first]) await store.putContent(id, image)
      expect(await under.second.bytes([id])).toBe(100_000)
      await Promise.all([under.first.putContent(id, randomBytes(5000)), under.first.putContent(id, randomBytes(7000))])
      expect(await under.second.bytes([id, `${id}x`])).toBe(112_000)
      expect((await under.first.bytes()) - before).toBe(112_000)
      const epoch = await under.takeOver(id)
      await put(await under.second.open(id, epoch), { a: '1' })
      expect(await under.first.bytes([id])).toBeGreaterThan(112_000)
      await under.first.remove(id, epoch)
      expect(await under.second.bytes([id])).toBe(0)
    })

    it('removes content that nothing names from its own session at most, and stores it again', async () => {
      const bytes = randomBytes(1000)
      const hash = await under.first.putContent(id, bytes)
      await under.second.putContent(id, bytes)
      await under.first.putContent(`${id}x`, bytes)
      expect((await under.second.getContent(id, hash))?.equals(bytes)).toBe(true)
      await under.first.removeContent(id, hash)
      await under.first.removeContent(id, hash)
      await under.first.removeContent(id, '../x')
      expect((await under.first.getContent(`${id}x`, hash))?.equals(bytes)).toBe(true)
      await under.first.putContent(id, bytes)
      expect((await under.second.getContent(id, hash))?.equals(bytes)).toBe(true)
    })

    it('behaves like the model under random sequences of operations', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(operation, { minLength: 1, maxLength: 14 }), async (operations) => {
          id = randomUUID()
          const reopened = () => owner(Math.random() < 0.5 ? under.first : under.second)
          await compare(operations, reopened, (isMade) => under.loseAnswer?.(isMade))
        }),
        { numRuns: runs }
      )
    })
  })
}

interface Step {
  kind: 'put' | 'delete' | 'keep' | 'part' | 'version' | 'drop' | 'takeOver'
  name: string
  text: string
  /** The session store makes the change, or does not, and does not answer. */
  lost?: 'made' | 'not made' | undefined
  /** After a lost answer, the same is committed again. */
  isRepeated: boolean
}

const operation: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom('put', 'put', 'delete', 'keep', 'part', 'version', 'drop', 'takeOver'),
  name: fc.constantFrom('a', 'b', 'c/d'),
  text: fc.oneof(fc.constantFrom('', 'x', 'y'), fc.string({ maxLength: 50 })),
  lost: fc.constantFrom(undefined, undefined, undefined, 'made', 'not made'),
  isRepeated: fc.boolean()
})

const LAST: Step = { kind: 'takeOver', name: '', text: '', isRepeated: false }

interface Model {
  files: Files
  sets: Map<string, StoredChangeSet>
}

/** Replaces the set of this name by one, or by none. */
function replaced({ sets }: Model, name: string, by?: StoredChangeSet): Model['sets'] {
  return new Map([...[...sets].filter(([id]) => id !== name), ...(by ? [[name, by] as const] : [])])
}

/** Returns what the step commits, and what must be stored then. */
function planned(model: Model, { kind, name, text }: Step): { delta: CheckpointDelta; next: Model } {
  const delta = { put: [] as WorkspaceEntry[], deleted: [] as string[], drop: [] as string[] }
  const { [name]: before = null, ...others } = model.files
  let { files } = model
  let keep: StoredChangeSet | undefined
  if (kind === 'delete') {
    delta.deleted.push(name)
    files = others
  }
  if (kind === 'put' || kind === 'version') {
    delta.put.push(fileEntry(name, Buffer.from(text)))
    files = { ...files, [name]: text }
  }
  if (kind === 'keep') keep = set(name, 'open', name, null, text)
  if (kind === 'part') keep = set(name, 'part', name, before, text)
  if (kind === 'version') keep = set(name, 'version', name, before, text)
  // A version would grow otherwise.
  if (kind === 'drop' || kind === 'version') delta.drop.push(name)
  const sets = kind === 'drop' || keep ? replaced(model, name, keep) : model.sets
  return { delta: { ...delta, ...(keep && { keep: [keep] }) }, next: { files, sets } }
}

async function compare(
  steps: readonly Step[],
  owner: () => Promise<Checkpoint>,
  loseAnswer: (isMade: boolean | undefined) => void
): Promise<void> {
  let model: Model = { files: {}, sets: new Map() }
  let checkpoint = await owner()
  /** Whether the change whose answer is lost will be made. */
  let isMade: boolean | undefined
  const commit = async (step: Step) => {
    const { delta, next } = planned(model, step)
    await checkpoint.addBlob(Buffer.from(step.text))
    const isLost = await checkpoint.commit(delta).then(() => false, lostAnswer)
    if (!isLost || isMade) model = next
    if (isLost) isMade = undefined
    return isLost
  }
  const reopen = async () => {
    const next = await owner()
    await checkpoint.close()
    checkpoint = next
  }
  for (const step of [...steps, LAST]) {
    if (step.lost) {
      isMade = step.lost === 'made'
      loseAnswer(isMade)
    }
    if (step.kind === 'takeOver') await reopen()
    else if ((await commit(step)) && (!step.isRepeated || (await commit(step)))) continue
    await expectModel(checkpoint, model)
  }
  loseAnswer(undefined)
  await checkpoint.close()
}

async function expectModel(checkpoint: Checkpoint, model: Model): Promise<void> {
  expect(await filesOf(checkpoint)).toEqual(model.files)
  expect(Object.fromEntries(checkpoint.changeSets)).toEqual(Object.fromEntries(model.sets))
  const sides = [...model.sets.values()].flatMap(({ changes }) => changes.flatMap((each) => [each.before, each.after]))
  for (const side of sides) if (side?.type === 'file') await contentOf(checkpoint, side.hash)
}

function lostAnswer(error: unknown): true {
  if (error instanceof Error && error.message === LOST_ANSWER) return true
  throw error
}

function set(id: string, kind: StoredChangeSet['kind'], path: string, before: string | null, after: string) {
  const side = (text: string | null) => (text === null ? null : fileEntry(path, Buffer.from(text)))
  const changes = [{ path, before: side(before), after: side(after) }]
  return { id, kind, at: 1, about: { by: 'person' }, changes } satisfies StoredChangeSet
}
