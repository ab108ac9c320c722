/**
 * People who work in sessions, machines that die and wake up late, and the collector, on clocks that are moved. It knows what was
 * acknowledged, and what may be deleted. For `collector-model.test.ts`.
 */
import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { silentLogger } from '../../lib/logger.ts'
import type { Checkpoint, CheckpointStore } from '../checkpoint-store.ts'
import { files as filesOf, LOST_ANSWER, MB, put } from '../checkpoints/checkpoint-files.fixture.ts'
import type { Fault } from '../objects/fake-object-service.ts'
import type { S3ObjectStore } from '../objects/s3-object-store.ts'
import type { Store } from '../store.ts'
import { Collector } from './collector.ts'
import { readObject } from './object-cache.ts'
import type { ObjectFixture } from './object-checkpoints.fixture.ts'
import { decodeHead, loadState } from './object-manifest.ts'
import { sessionFolder } from './object-names.ts'

export interface Step {
  kind: 'change' | 'slow change' | 'large' | 'image' | 'take over' | 'wake up' | 'collect' | 'lose the store'
  session: 'a' | 'b'
  /** How many hours pass before it; in a slow change twice, between its uploads and the change of the head. */
  hours: number
  faults: (Fault | undefined)[]
  /** By how many hours the clock of the service is off. */
  skew: number
  /** The session store makes the change, or does not, and does not answer. */
  lost?: boolean | undefined
}

interface Known {
  checkpoint: Checkpoint
  epoch: number
  former: { checkpoint: Checkpoint; epoch: number }[]
  /** The texts that each file may contain: one, or more after a lost answer. */
  files: Map<string, Set<string | undefined>>
  images: Map<string, string>
}

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

export class CollectorModel {
  readonly #fixture: ObjectFixture
  readonly #other: Store
  readonly #stores: CheckpointStore[]
  readonly #sessions = new Map<string, Known>()
  /** How much later it is than on the clocks of this machine. */
  #laterMs = 0
  #skewMs = 0
  #count = 0
  /** How much later it was when an object was stored, and when something named it last. */
  readonly #storedAt = new Map<string, number>()
  readonly #namedAt = new Map<string, number>()
  readonly #run = randomUUID()

  /** `other` is a session store that is not the one of the bucket. */
  constructor(fixture: ObjectFixture, other: Store) {
    this.#fixture = fixture
    this.#other = other
    this.#stores = [fixture.instance(), fixture.instance(0)]
    this.#moveClocks(fixture.objects as S3ObjectStore)
  }

  async play(steps: readonly Step[]): Promise<void> {
    for (const step of steps) {
      if (step.kind !== 'slow change') this.#laterMs += step.hours * HOUR_MS
      this.#skewMs = step.skew * HOUR_MS
      const known = await this.#session(step.session)
      const before = await this.#keys()
      const faults = [...step.faults]
      this.#fixture.service.fault = () => faults.shift()
      await this.#do(step, known, before)
      this.#fixture.service.fault = () => undefined
      await this.#expectKept(before)
      await this.#expectReadable()
    }
  }

  /** Without faults, everything that nothing names goes, and nothing else. */
  async settle(): Promise<void> {
    this.#skewMs = 0
    for (let i = 0; i < 3; i++) {
      this.#laterMs += 2 * DAY_MS
      await this.#collect(this.#fixture.store)
    }
    await this.#expectReadable()
    const named = await this.#named()
    expect((await this.#keys()).filter((key) => !named.has(key))).toEqual([])
    const { listUploads } = this.#fixture.objects
    expect((await listUploads.call(this.#fixture.objects, this.#prefix)).found).toEqual([])
  }

  async #do(step: Step, known: Known, before: readonly string[]): Promise<void> {
    const id = this.#idOf(step.session)
    if (step.kind === 'take over') return this.#takeOver(step.session, known)
    if (step.kind === 'wake up') return this.#wakeUp(id, known)
    if (step.kind === 'collect') return void (await this.#collect(this.#fixture.store).catch(() => {}))
    if (step.kind === 'lose the store') return this.#collectWithoutStore(before)
    if (step.kind === 'image') return this.#image(id, known)
    await this.#change(step, known)
  }

  async #change(step: Step, { checkpoint, files }: Known): Promise<void> {
    const name = `f${this.#count % 3}`
    const text = `${++this.#count}`.repeat(step.kind === 'large' ? 5 * MB : 1)
    const { heads } = this.#fixture.store
    if (step.lost !== undefined) this.#fixture.loseAnswer(step.lost)
    const { swap } = heads
    const startedAt = this.#laterMs
    heads.swap = async (sessionId, change) => {
      heads.swap = swap
      // Twice, because the collector looks twice before it deletes.
      for (let i = 0; i < 2 && step.kind === 'slow change'; i++) {
        this.#laterMs += step.hours * HOUR_MS
        await this.#collect(this.#fixture.store).catch(() => {})
      }
      return swap(sessionId, { ...change, since: change.since - (this.#laterMs - startedAt) })
    }
    const before = files.get(name) ?? new Set([undefined])
    try {
      await put(checkpoint, { [name]: text })
      files.set(name, new Set([text]))
    } catch (error) {
      const isUnknown = error instanceof Error && error.message === LOST_ANSWER
      if (isUnknown) files.set(name, new Set([...before, text]))
      else expect(error).toMatchObject({ code: 'checkpoint_failed' })
    }
    heads.swap = swap
    this.#fixture.loseAnswer(undefined)
  }

  async #image(id: string, { images }: Known): Promise<void> {
    const text = `image ${this.#count % 3}`
    const store = this.#stores[this.#count++ % 2] as CheckpointStore
    const hash = await store.putContent(id, Buffer.from(text)).catch(() => undefined)
    if (hash !== undefined) images.set(hash, text)
  }

  async #takeOver(session: string, known: Known): Promise<void> {
    known.former.push({ checkpoint: known.checkpoint, epoch: known.epoch })
    Object.assign(known, await this.#open(session))
  }

  /** It can neither change, remove or delete anything, nor read what is newer. */
  async #wakeUp(id: string, { former, files }: Known): Promise<void> {
    const { requests } = this.#fixture.service
    const from = requests.length
    for (const { checkpoint, epoch } of former) {
      const before = [...checkpoint.entries.values()]
      await expect(put(checkpoint, { stale: 'stale' })).rejects.toMatchObject({
        code: expect.stringMatching(/^(lease_lost|checkpoint_failed)$/)
      })
      expect([...checkpoint.entries.values()]).toEqual(before)
      const store = this.#stores[0] as CheckpointStore
      await expect(store.remove(id, epoch)).rejects.toMatchObject({ code: 'lease_lost' })
      const stored = await this.#fixture.store.heads.read(id)
      if (stored === null || decodeHead(stored).epoch <= epoch) continue
      await expect(store.open(id, epoch)).rejects.toMatchObject({ code: 'lease_lost' })
    }
    expect(requests.slice(from).filter(({ method, query }) => method === 'DELETE' && !query.has('uploadId'))).toEqual(
      []
    )
    expect(files.has('stale')).toBe(false)
  }

  async #collect(store: Store): Promise<unknown> {
    const { objects } = this.#fixture
    const later = this.#laterMs
    const sessions = { ...store.sessions, now: async () => (await store.sessions.now()) + later }
    const images = new Set([...this.#sessions.values()].flatMap((known) => [...known.images.keys()]))
    const others = {
      namedContents: async (_: string, hashes: ReadonlySet<string>) =>
        new Set([...hashes].filter((hash) => images.has(hash))),
      sessionIds: async () => [...this.#sessions.keys()].map((session) => this.#idOf(session)),
      instanceId: randomUUID(),
      logger: silentLogger
    }
    const { heads, keyValues } = store
    return new Collector({ objects, prefix: this.#prefix, heads, keyValues, sessions, ...others }).round()
  }

  /** The store was emptied, or can't be reached. */
  async #collectWithoutStore(before: readonly string[]): Promise<void> {
    await this.#collect(this.#other).catch(() => {})
    const { store } = this.#fixture
    const list = () => Promise.reject(new Error('no answer'))
    await this.#collect({ ...store, heads: { ...store.heads, list } }).catch(() => {})
    this.#fixture.service.fault = () => undefined
    expect(await this.#keys()).toEqual(before)
  }

  /** Checks that every object that is gone was stored and named more than a day ago. */
  async #expectKept(before: readonly string[]): Promise<void> {
    const left = new Set(await this.#keys())
    for (const key of before) {
      if (left.has(key)) continue
      const lastMs = Math.max(this.#namedAt.get(key) ?? 0, this.#storedAt.get(key) ?? 0)
      expect(this.#laterMs - lastMs).toBeGreaterThanOrEqual(DAY_MS)
    }
    for (const key of await this.#named()) this.#namedAt.set(key, this.#laterMs)
  }

  async #expectReadable(): Promise<void> {
    for (const [session, known] of this.#sessions) {
      const id = this.#idOf(session)
      const fresh = this.#fixture.instance()
      const found = await filesOf(await fresh.open(id, known.epoch))
      for (const [name, texts] of known.files) expect([...texts].some((text) => text === found[name])).toBe(true)
      expect(Object.keys(found).filter((name) => !known.files.has(name))).toEqual([])
      for (const [hash, text] of known.images) expect(String(await fresh.getContent(id, hash))).toBe(text)
    }
  }

  /** The keys of all objects that count. */
  async #named(): Promise<Set<string>> {
    const named = new Set<string>()
    const { objects, store } = this.#fixture
    for (const [session, { images }] of this.#sessions) {
      const folder = sessionFolder(this.#prefix, this.#idOf(session))
      const keys = (await this.#keys()).filter((key) => key.startsWith(folder) && key.endsWith('.content'))
      for (const key of keys) if (images.has(key.slice(folder.length, folder.length + 64))) named.add(key)
      const stored = await store.heads.read(this.#idOf(session))
      if (stored === null) continue
      const head = decodeHead(stored)
      const { state } = await loadState({ readAll: (key) => readObject(objects, key) }, folder, head)
      for (const name of [head.base, head.tail, ...state.packUse().keys()]) if (name) named.add(folder + name)
    }
    return named
  }

  async #keys(): Promise<string[]> {
    const keys: string[] = []
    for (let from: string | undefined; ; ) {
      const page = await this.#fixture.objects.list(`${this.#prefix}sessions/`, from)
      keys.push(...page.found.map(({ key }) => key))
      from = page.next
      if (from === undefined) return keys
    }
  }

  async #session(session: string): Promise<Known> {
    const known = this.#sessions.get(session)
    if (known) return known
    const made = { ...(await this.#open(session)), former: [], files: new Map(), images: new Map() }
    this.#sessions.set(session, made)
    return made
  }

  /** By another instance each time. */
  async #open(session: string): Promise<Pick<Known, 'checkpoint' | 'epoch'>> {
    this.#fixture.service.fault = () => undefined
    const epoch = await this.#fixture.takeOver(this.#idOf(session))
    const store = this.#stores[this.#count++ % 2] as CheckpointStore
    return { checkpoint: await store.open(this.#idOf(session), epoch), epoch }
  }

  get #prefix(): string {
    return this.#fixture.prefix
  }

  #idOf(session: string): string {
    return `${session}-${this.#run}`
  }

  /** As if the service had lived through the hours that pass, and its clock were off. */
  #moveClocks(objects: S3ObjectStore): void {
    const { list, listUploads, put: store } = objects
    const born = (key: string) => this.#storedAt.get(key) ?? 0
    const now = () => Date.now() + this.#laterMs + this.#skewMs
    objects.put = (key, content) => {
      this.#storedAt.set(key, this.#laterMs)
      return store.call(objects, key, content)
    }
    objects.list = async (...args) => {
      const page = await list.apply(objects, args)
      return { ...page, now: now(), found: page.found.map((o) => ({ ...o, modifiedAt: o.modifiedAt + born(o.key) })) }
    }
    objects.listUploads = async (...args) => {
      const page = await listUploads.apply(objects, args)
      return { ...page, now: now(), found: page.found.map((u) => ({ ...u, startedAt: u.startedAt + born(u.key) })) }
    }
  }
}
