import type { WorkspaceEntry } from '../../../workspace-server/protocol.ts'
import { KeyedLock } from '../../lib/waiting/keyed-lock.ts'
import type { Checkpoint, CheckpointDelta, StoredChangeSet } from '../checkpoint-store.ts'
import { checkpointClosed, checkSize, contentMissing, translateFileError } from './checkpoint-errors.ts'
import type { Change, CheckpointState, Location } from './checkpoint-state.ts'
import type { PackWriter } from './pack-set.ts'
import { PendingBlobs } from './pending-blobs.ts'
import type { WantedContent } from './read-content.ts'

/** The maximum size of versions, and how long they are kept. */
export interface HistoryLimits {
  maxBytes: number
  keptMs: number
}

interface Packs extends PackWriter {
  read(hash: string, location: Location, chunkBytes: number): AsyncIterable<Uint8Array>
  readSmall(wanted: readonly WantedContent[]): Promise<(Buffer | undefined)[]>
}

/** The common part of a checkpoint in a folder and one in a bucket. It runs one operation at a time; reads run in parallel. */
export abstract class PackedCheckpoint implements Checkpoint {
  protected readonly state: CheckpointState
  protected readonly pending: PendingBlobs
  readonly #packs: Packs
  readonly #limits: { maxBytes: number; history: HistoryLimits }
  readonly #queue = new KeyedLock()
  #closing: Promise<void> | undefined

  constructor(state: CheckpointState, packs: Packs, limits: { maxBytes: number; history: HistoryLimits }) {
    this.state = state
    this.pending = new PendingBlobs(packs, limits.maxBytes)
    this.#packs = packs
    this.#limits = limits
  }

  /** Makes a change durable, and forgets the pending content. Undefined: nothing changes. */
  protected abstract save(change: Change | undefined): Promise<void>
  /** Runs after a commit. The next one waits for it, this one does not. */
  protected abstract tidy(): Promise<void>
  protected abstract end(): Promise<void>
  /** Runs before content is added. */
  protected prepare(): void {}
  /** Brings the state up to a change that was in doubt, and returns whether it counts. Nothing may be planned before. */
  protected async adoptDoubt(): Promise<boolean> {
    return false
  }
  /** Whether a change that is in doubt drops the content. */
  protected mayBeGone(_hash: string): boolean {
    return false
  }
  protected translate(error: unknown): unknown {
    return error
  }

  get entries(): ReadonlyMap<string, WorkspaceEntry> {
    return this.state.entries
  }

  get changeSets(): ReadonlyMap<string, StoredChangeSet> {
    return this.state.changeSets
  }

  get isThinned(): boolean {
    return this.state.isThinned
  }

  has(hash: string): boolean {
    return (this.state.blobs.has(hash) && !this.mayBeGone(hash)) || this.pending.sizeOf(hash) !== undefined
  }

  addBlob(content: Uint8Array | AsyncIterable<Uint8Array>): Promise<{ hash: string; size: number }> {
    return this.#inTurn(async () => {
      this.prepare()
      try {
        await this.adoptDoubt()
        return await this.pending.add(content, (hash) => this.state.blobs.has(hash))
      } catch (error) {
        throw translateFileError(error)
      }
    })
  }

  settle(): Promise<boolean> {
    return this.#inTurn(() => this.adoptDoubt())
  }

  commit(delta: CheckpointDelta): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#inTurn(async () => {
      await this.#commit(delta)
      resolve()
      await this.tidy()
    }).catch(reject)
    return promise
  }

  async *read(hash: string, chunkBytes: number): AsyncIterable<Uint8Array> {
    const blob = this.#located(hash)
    try {
      yield* this.#packs.read(hash, { ...blob }, chunkBytes)
    } catch (error) {
      throw this.translate(error)
    }
  }

  async readSmall(hashes: readonly string[]): Promise<(Uint8Array | undefined)[]> {
    const wanted = hashes.map((hash) => ({ hash, ...this.#located(hash) }))
    return this.#packs.readSmall(wanted).catch((error: unknown) => {
      throw this.translate(error)
    })
  }

  close(): Promise<void> {
    this.#closing ??= this.#queue.run('', () => this.end())
    return this.#closing
  }

  #located(hash: string): Location {
    if (this.#closing) throw checkpointClosed()
    const blob = this.state.blobs.get(hash)
    if (!blob) throw contentMissing()
    return blob
  }

  #inTurn<T>(job: () => Promise<T>): Promise<T> {
    if (this.#closing) return Promise.reject(checkpointClosed())
    return this.#queue.run('', job)
  }

  async #commit(delta: CheckpointDelta): Promise<void> {
    await this.adoptDoubt()
    const change = this.state.plan(delta, (hash) => this.pending.sizeOf(hash))
    const { maxBytes, keptMs } = this.#limits.history
    const isEmpty = change.put.length + change.deleted.length + change.changeSets.size === 0
    if (!isEmpty) this.state.thin(change, { maxBytes, since: Date.now() - keptMs })
    checkSize(change, this.state, this.#limits.maxBytes, maxBytes)
    await this.save(isEmpty ? undefined : change)
  }
}
