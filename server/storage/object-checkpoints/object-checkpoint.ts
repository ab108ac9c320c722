import { createHash } from 'node:crypto'
import { AppError, isAppError, messageOf } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import { isNamed, sumOfRefs } from '../checkpoints/change-sets.ts'
import { translateFileError } from '../checkpoints/checkpoint-errors.ts'
import { type Change, type CheckpointState, isNeeded, type Location } from '../checkpoints/checkpoint-state.ts'
import { copyLive } from '../checkpoints/compaction.ts'
import { type HistoryLimits, PackedCheckpoint } from '../checkpoints/packed-checkpoint.ts'
import type { FileHeads } from '../file-heads.ts'
import { contentOf, type ObjectStore } from '../objects/object-store.ts'
import type { SessionStore } from '../session-store.ts'
import { leaseLost } from '../store-errors.ts'
import { draftContent, type ObjectCache } from './object-cache.ts'
import { encodeHead, type Head, nextManifest, packsBytes, snapshotOf, tailsPerBase } from './object-manifest.ts'
import { objectName } from './object-names.ts'
import { type NamedPack, ObjectPacks } from './object-packs.ts'
import { packsToMerge } from './packs-to-merge.ts'

/** The parts that all checkpoints of sessions share. */
export interface ObjectDeps {
  objects: ObjectStore
  cache: ObjectCache
  heads: FileHeads
  sessions: Pick<SessionStore, 'now'>
  logger: Logger
  maxBytes: number
  history: HistoryLimits
}

interface Loaded {
  sessionId: string
  epoch: number
  folder: string
  state: CheckpointState
  /** The head as it is stored, and what it says. */
  stored: string | null
  head: Head | undefined
  tail: Buffer
}

const UPLOADS_AT_ONCE = 4
/** After a failed merge, the next one waits for this many commits. */
const MERGE_PAUSE = 20

/**
 * Writes objects that nothing names yet, then makes them count with one change of the head in the session store, under its epoch.
 * So a lost answer, a crash or a former owner can only leave objects that don't count. It deletes nothing.
 */
export class ObjectCheckpoint extends PackedCheckpoint {
  readonly #deps: ObjectDeps
  readonly #loaded: Loaded
  readonly #packs: ObjectPacks
  /** A change of the head was sent and not answered: it may count. */
  #inDoubt: HeadInDoubt | undefined
  #mergePause = 0

  constructor(deps: ObjectDeps, loaded: Loaded) {
    const packs = new ObjectPacks(deps.cache, loaded.folder)
    super(loaded.state, packs, deps)
    this.#deps = deps
    this.#loaded = loaded
    this.#packs = packs
  }

  protected async save(change: Change | undefined): Promise<void> {
    try {
      if (change) await this.#store(change)
    } catch (error) {
      throw translateObjectError(error)
    } finally {
      this.pending.clear()
      await this.#packs.discard()
    }
  }

  protected tidy(): Promise<void> {
    return this.#merge()
  }

  protected end(): Promise<void> {
    return this.#packs.discard()
  }

  protected override prepare(): void {
    this.#packs.sealIfFull()
  }

  protected override translate(error: unknown): unknown {
    return translateObjectError(error)
  }

  async #store(change: Change): Promise<void> {
    const since = await this.#deps.sessions.now()
    const isNew = (hash: string) => isNeeded(change, hash) && !this.state.blobs.has(hash)
    const added = await this.pending.write(isNew)
    const packs = await this.#packs.take((draft) => [...added.values()].some(({ pack }) => pack === draft))
    const located = inObjects(added, packs)
    const before = { state: this.state, hasBase: this.#loaded.head !== undefined, tail: this.#loaded.tail }
    const manifest = nextManifest(before, change, located)
    const used = new Set([...this.state.packUse().keys(), ...[...packs.values()].map(({ name }) => name)])
    // Must not fail once the change counts.
    for (const hash of change.refs.keys()) if (isNew(hash)) at(located, hash)
    const adopt = () => void this.state.apply(change, (hash) => at(located, hash))
    await this.#publish({ packs, manifest, used, since, adopt, refs: change.refs })
  }

  protected override async adoptDoubt(): Promise<boolean> {
    const doubt = this.#inDoubt
    if (doubt === undefined) return false
    const stored = await this.#deps.heads.read(this.#loaded.sessionId)
    // Only we write under our epoch, so it is one of these if it is ours. If it counts, our state must follow: what it does not
    // name may be gone in a day.
    const counts = stored === doubt.next
    if (!counts && stored !== this.#loaded.stored) throw leaseLost()
    if (counts) doubt.adopt()
    this.#inDoubt = undefined
    return counts
  }

  protected override mayBeGone(hash: string): boolean {
    const by = this.#inDoubt?.refs.get(hash)
    return by !== undefined && !isNamed(sumOfRefs(this.state.blobs.get(hash), by))
  }

  async #publish({ packs, manifest, used, since, adopt, refs }: Publication): Promise<void> {
    const { folder, epoch, head: before } = this.#loaded
    const hash = createHash('sha256').update(manifest.bytes).digest('hex')
    const name = objectName(hash, manifest.bytes.length, 'manifest')
    const names: Pick<Head, 'base' | 'tail'> =
      manifest.kind === 'base' || !before ? { base: name } : { base: before.base, tail: name }
    const bytes = packsBytes(used) + packsBytes([names.base, names.tail ?? ''])
    await this.#upload([...packs.values()], folder + name, manifest.bytes)
    const head = { epoch, bytes, ...names }
    const next = encodeHead(head)
    const adoptAll = () => {
      adopt()
      this.#loaded.stored = next
      this.#loaded.head = head
      this.#loaded.tail = manifest.kind === 'base' ? Buffer.alloc(0) : manifest.bytes
    }
    await this.#swap({ next, refs, adopt: adoptAll }, since)
    await this.#dropReplaced(before, names)
  }

  /** The next commit needs them no more. The change counts already, so this must not fail. */
  async #dropReplaced(before: Head | undefined, now: Pick<Head, 'base' | 'tail'>): Promise<void> {
    const { cache, logger } = this.#deps
    const { folder } = this.#loaded
    for (const name of [before?.base, before?.tail]) {
      if (name === undefined || name === now.base || name === now.tail) continue
      await cache.drop(folder + name).catch((error: unknown) => {
        logger.warn({ err: error, folder }, `A replaced manifest stays in the cache: ${messageOf(error)}`)
      })
    }
  }

  /** Nothing counts before the head names it, so the order does not matter. */
  async #upload(packs: readonly NamedPack[], manifestKey: string, manifest: Buffer): Promise<void> {
    const { objects, cache } = this.#deps
    const { folder } = this.#loaded
    const waiting = [...packs]
    const work = async () => {
      for (let pack = waiting.pop(); pack; pack = waiting.pop()) {
        await objects.put(folder + pack.name, draftContent(pack.draft, pack.bytes))
      }
    }
    const sent = [objects.put(manifestKey, contentOf(manifest)), ...Array.from({ length: UPLOADS_AT_ONCE }, work)]
    const failed = (await Promise.allSettled(sent)).find(({ status }) => status === 'rejected')
    for (const { name, draft } of packs) {
      await (failed ? cache.discard(draft) : cache.keep(folder + name, draft))
    }
    if (failed?.status === 'rejected') throw failed.reason
    await cache.add(manifestKey, manifest)
  }

  async #swap(change: HeadInDoubt, since: number): Promise<void> {
    const { sessionId, epoch, stored: known } = this.#loaded
    this.#inDoubt = change
    const result = await this.#deps.heads.swap(sessionId, { epoch, known, next: change.next, since })
    this.#inDoubt = undefined
    if (result === 'late') {
      const message = 'Saving the files took too long; they are saved again with the next change.'
      throw new AppError('unavailable', 'checkpoint_failed', message)
    }
    if (result === 'changed' && (await this.#deps.heads.read(sessionId)) === null) {
      throw new AppError('not-found', 'checkpoint_removed', 'The files of this session were removed; open it again.')
    }
    if (result !== 'ok') throw leaseLost()
    change.adopt()
  }

  async #merge(): Promise<void> {
    if (this.#mergePause-- > 0) return
    const from = packsToMerge(this.state, tailsPerBase(this.#loaded.tail, this.state) >= 1)
    if (from.size === 0) return
    try {
      const since = await this.#deps.sessions.now()
      const copied = await copyLive(this.#packs, this.state, from)
      const packs = await this.#packs.take(() => true)
      const moved = inObjects(copied, packs)
      const after = this.state.clone().move(moved)
      const used = after.packUse().keys()
      const adopt = () => void this.state.move(moved)
      const manifest = { kind: 'base', bytes: snapshotOf(after) } as const
      await this.#publish({ packs, manifest, used, since, adopt, refs: new Map() })
    } catch (error) {
      this.#mergePause = MERGE_PAUSE
      await this.#packs.discard()
      const { logger } = this.#deps
      logger.warn({ err: error, folder: this.#loaded.folder }, `Packs were not merged: ${messageOf(error)}`)
    }
  }
}

interface HeadInDoubt {
  next: string
  /** For each content: by how much the number of its names changes. */
  refs: Change['refs']
  /** Brings our state up to it. */
  adopt: () => void
}

interface Publication extends Omit<HeadInDoubt, 'next'> {
  packs: ReadonlyMap<string, NamedPack>
  manifest: { kind: 'base' | 'tail'; bytes: Buffer }
  /** Names of all packs that count then. */
  used: Iterable<string>
  since: number
}

/** Turns an error of the object store into one about files; returns all others unchanged. */
export function translateObjectError(error: unknown): unknown {
  if (!isAppError(error, 'objects_unavailable') && !isAppError(error, 'objects_refused')) {
    return translateFileError(error)
  }
  const message = `The files of this session could not be stored or read: ${error.message}`
  return new AppError('unavailable', 'checkpoint_failed', message, { cause: error })
}

/** Replaces drafts with names of objects in the locations. */
function inObjects(
  locations: ReadonlyMap<string, Location>,
  packs: ReadonlyMap<string, NamedPack>
): Map<string, Location> {
  return new Map(
    [...locations].map(([hash, location]) => {
      return [hash, { ...location, pack: packs.get(location.pack)?.name ?? location.pack }]
    })
  )
}

function at(locations: ReadonlyMap<string, Location>, hash: string): Location {
  const location = locations.get(hash)
  if (!location) throw new Error('content was planned for but not written')
  return location
}
