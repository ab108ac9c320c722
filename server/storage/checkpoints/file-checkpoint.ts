import type { FileHandle } from 'node:fs/promises'
import type { Logger } from '../../lib/logger.ts'
import { translateFileError } from './checkpoint-errors.ts'
import { type Change, type CheckpointState, deltaRecord, isNeeded, type Location } from './checkpoint-state.ts'
import { copyLive, manifestIsBloated, packsToRewrite } from './compaction.ts'
import { writeFully } from './file-io.ts'
import { encodeRecord, type ManifestRecord } from './manifest-record.ts'
import type { PackSet } from './pack-set.ts'
import { type HistoryLimits, PackedCheckpoint } from './packed-checkpoint.ts'
import type { SessionFolder } from './session-folder.ts'

export interface FileCheckpointParts {
  folder: SessionFolder
  packs: PackSet
  state: CheckpointState
  maxBytes: number
  history: HistoryLimits
  logger: Logger
  /** Called when the files on disk have changed. */
  written: () => void
}

interface Manifest {
  name: string
  handle: FileHandle
  bytes: number
}

/**
 * Writes only files that it created, content before the record that names it. After a failed write it starts new files, because
 * the end of the old ones is unknown.
 */
export class FileCheckpoint extends PackedCheckpoint {
  readonly #folder: SessionFolder
  readonly #packs: PackSet
  readonly #logger: Logger
  readonly #written: () => void
  #manifest: Manifest | undefined
  /** Manifests abandoned after a failure. The newest of them counts until a new one is written. */
  #abandoned: string[] = []
  /** Whether a manifest of ours is in force, or may be. */
  #mayCount = false
  /** Whether a record is being written. Until it is, nobody knows whether the record and the content that it names count. */
  #inDoubt = false
  /** After a failed compaction: the number of dead bytes that the next try waits for. */
  #compactFrom = 0

  constructor({ folder, packs, state, maxBytes, history, logger, written }: FileCheckpointParts) {
    super(state, packs, { maxBytes, history })
    this.#folder = folder
    this.#packs = packs
    this.#logger = logger
    this.#written = written
  }

  protected async save(change: Change | undefined): Promise<void> {
    if (change) await this.#store(change)
    this.pending.clear()
    this.#written()
  }

  protected async tidy(): Promise<void> {
    await this.#compact()
    this.#written()
  }

  protected async end(): Promise<void> {
    this.#packs.close()
    await this.#manifest?.handle.close()
    if (!this.#mayCount) await this.#folder.removeAllOwn()
  }

  async #store(change: Change): Promise<void> {
    try {
      await this.#folder.assertCurrent()
      const isNew = (hash: string) => isNeeded(change, hash) && !this.state.blobs.has(hash)
      const added = await this.pending.write(isNew)
      const locate = (hash: string) => at(added, hash)
      await this.#packs.sync()
      await this.#folder.sync()
      if (this.#manifest) await this.#append(this.#manifest, encodeRecord(deltaRecord(change, added)))
      else await this.#begin(this.state.clone().apply(change, locate))
      this.state.apply(change, locate)
      this.#packs.markKept()
    } catch (error) {
      await this.#abandonFiles()
      throw translateFileError(error)
    }
  }

  async #append(manifest: Manifest, line: Buffer): Promise<void> {
    this.#inDoubt = true
    await writeFully(manifest.handle, line, manifest.bytes)
    await manifest.handle.datasync()
    this.#inDoubt = false
    manifest.bytes += line.length
  }

  /** Writes a new manifest with the whole state, then deletes what it replaces. */
  async #begin(state: CheckpointState): Promise<void> {
    const former = this.#manifest
    const draft = await this.#folder.draftManifest(lines(state.snapshot()))
    this.#inDoubt = true
    const name = await this.#folder.publish(draft)
    this.#inDoubt = false
    this.#manifest = { name, handle: draft.handle, bytes: draft.bytes }
    this.#mayCount = true
    await former?.handle.close().catch(() => {})
    await this.#folder.removeOwn([...this.#abandoned.splice(0), ...(former ? [former.name] : [])])
    await this.#folder.removeOlder().catch((error: unknown) => {
      this.#logger.warn({ err: error, folder: this.#folder.path }, 'checkpoint: old files could not be deleted')
    })
  }

  /** Called after a failure. The former manifest stays until there is a new one, because a crash would be recovered from it. */
  async #abandonFiles(): Promise<void> {
    this.pending.clear()
    if (this.#inDoubt) this.#packs.seal()
    else await this.#packs.dropTail()
    this.#mayCount ||= this.#inDoubt
    this.#inDoubt = false
    if (!this.#manifest) return
    const { name, handle } = this.#manifest
    this.#manifest = undefined
    this.#abandoned.push(name)
    await handle.close().catch(() => {})
  }

  async #compact(): Promise<void> {
    const { bytes = 0 } = this.#manifest ?? {}
    const rewrite = packsToRewrite(this.#packs, this.state)
    if (rewrite.size === 0 && !manifestIsBloated(bytes, this.state)) return
    const weight = this.#packs.bytes + bytes
    if (weight < this.#compactFrom) return
    try {
      await this.#rewrite(rewrite)
      this.#compactFrom = 0
    } catch (error) {
      this.#compactFrom = 2 * weight
      await this.#abandonFiles()
      this.#logger.warn({ err: error, folder: this.#folder.path }, 'checkpoint: old content could not be cleared away')
    }
  }

  async #rewrite(packs: ReadonlySet<string>): Promise<void> {
    const moved = packs.size > 0 ? await copyLive(this.#packs, this.state, packs) : new Map<string, Location>()
    await this.#packs.sync()
    await this.#folder.sync()
    await this.#begin(this.state.clone().move(moved))
    this.state.move(moved)
    this.#packs.markKept()
    for (const name of packs) this.#packs.drop(name)
    await this.#folder.removeOwn(packs)
  }
}

function* lines(records: Iterable<ManifestRecord>): Iterable<Buffer> {
  for (const record of records) yield encodeRecord(record)
}

function at(locations: ReadonlyMap<string, Location>, hash: string): Location {
  const location = locations.get(hash)
  if (!location) throw new Error('content was planned for but not written')
  return location
}
