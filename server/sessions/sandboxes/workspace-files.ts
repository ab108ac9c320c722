/**
 * Moves a session's files between its container and its checkpoint. It does not trust what the container says about content:
 * everything is stored under the hash of the bytes that arrived.
 */

import { randomUUID } from 'node:crypto'
import type { VersionAbout } from '../../../contract/effects/effect-replies.ts'
import { fromWire, parentOf, toWire } from '../../../workspace-server/checkpoint/raw-path.ts'
import type { ChangesResult, FetchResult, RestoreResult, WorkspaceEntry } from '../../../workspace-server/protocol.ts'
import { AppError, isAppError } from '../../lib/errors.ts'
import type { WorkspaceConnection } from '../../sandbox/port.ts'
import {
  type Checkpoint,
  type CheckpointDelta,
  isSameEntry,
  type StoredChange,
  type StoredChangeSet
} from '../../storage/checkpoint-store.ts'
import { linkRenames } from '../changes/link-renames.ts'
import { type ChangePlan, planChanges, type Resolution } from '../changes/plan-changes.ts'
import { changesUnsaved, mayPassLater } from './restoring/changes-unsaved.ts'
import { RestoreBatch } from './restoring/restore-batch.ts'
import { type DirEntry, depth, writeEntries } from './restoring/write-entries.ts'

const CHUNK_BYTES = 1024 * 1024
/** 256 MB of small files arrive in about 130 pages; no workspace of ours has ten times that. */
const MAX_PAGES = 2000
const ZEROS = Buffer.alloc(CHUNK_BYTES)

type FileEntry = Extract<WorkspaceEntry, { type: 'file' }>

/** A version of the workspace: its id, and who or what made it. */
export interface VersionName {
  id: string
  about: VersionAbout
}

export function madeByPerson(): VersionName {
  return { id: `person:${randomUUID()}`, about: { by: 'person' } }
}

export interface AppliedChanges {
  /** A function plans the changes from the current files. It is called when the checkpoint is up to date, and may throw. */
  changes: readonly StoredChange[] | ((saved: Checkpoint) => readonly StoredChange[])
  /** The choices for files that were changed in the workspace too. */
  resolution?: Resolution | undefined
  version: VersionName
  /** Returns the change sets that the same commit removes and adds. */
  beside?: (version: StoredChangeSet | null) => Pick<CheckpointDelta, 'drop' | 'keep'>
  /** If it can't be saved, the workspace is put back at once. Otherwise the changes stay there and are saved later. */
  orNothing?: boolean
}

export interface SyncOptions {
  /** The version that the changes belong to; undefined if nobody knows who made them. */
  version?: VersionName
  /** Rehash everything, which also finds writes that leave no trace in a file's times. */
  full?: boolean
  /** The server inside has no state yet and reports every file: what it does not report is gone. */
  everything?: boolean
}

interface Census {
  seen: Set<string>
  folders: Set<string>
  skipped: ChangesResult['skipped']
}

export class WorkspaceFiles {
  readonly #connection: WorkspaceConnection
  readonly #checkpoint: Checkpoint
  #ack = 0
  /** Reports of a server without state so far. They count until a sync succeeds, because acknowledged files are not reported again. */
  #census: Census | undefined
  #tail: Promise<unknown> = Promise.resolve()
  /** Saves changes that are in the container and could not be saved. The server inside does not report them, because we wrote them. */
  #unsaved: (() => Promise<unknown>) | undefined

  constructor(connection: WorkspaceConnection, checkpoint: Checkpoint) {
    this.#connection = connection
    this.#checkpoint = checkpoint
  }

  /** Brings the checkpoint up to date and returns what could not be stored. Calls are queued. */
  sync(options: SyncOptions = {}): Promise<ChangesResult['skipped']> {
    return this.inTurn(() => this.#sync(options))
  }

  version(id: string): StoredChangeSet | undefined {
    const set = this.#checkpoint.changeSets.get(id)
    return set?.kind === 'version' ? set : undefined
  }

  /** Adding content and committing it must be one job: a commit forgets added content that it does not name. */
  inTurn<T>(job: () => Promise<T>): Promise<T> {
    const run = this.#tail.then(job)
    this.#tail = run.catch(() => {})
    return run
  }

  /**
   * Applies changes whose content is in the checkpoint, to the container first and then to the checkpoint, as one version. After a
   * crash between the two it can be repeated: what is there already is not changed again. Returns the version, also if it existed
   * before, or null if there was nothing to change. Throws `changes_conflict` before anything is changed. If it throws
   * `changes_unsaved`, the changes are in the container or may be, and it must be repeated. After any other error they are not.
   */
  apply(input: AppliedChanges): Promise<StoredChangeSet | null> {
    return this.inTurn(async () => {
      await this.#sync({})
      const { changes, resolution, version, orNothing = false } = input
      const known = this.version(version.id)
      if (known) return known
      const wanted = typeof changes === 'function' ? changes(this.#checkpoint) : changes
      const plan = planChanges(this.#checkpoint.entries, wanted, resolution)
      await this.#write(plan.changes, this.#checkpoint.entries, false).catch((error) => this.#putBack(plan, error))
      const save = () => this.#commitApplied(plan, input)
      return save().catch(async (error) => {
        // Another instance has the session, and the container. It compares them when it opens the session.
        if (isAppError(error) && error.kind === 'conflict') throw error
        if (!orNothing && mayPassLater(error)) {
          this.#unsaved = save
          throw changesUnsaved(error)
        }
        const isSaved = await this.#checkpoint.settle().catch(() => this.#leave(error))
        return isSaved ? (this.version(version.id) ?? null) : this.#putBack(plan, error)
      })
    })
  }

  /** Takes back what was written, and throws why. */
  async #putBack({ changes }: ChangePlan, why: unknown): Promise<never> {
    const back = changes.map(({ path, before, after }) => ({ path, before: after, after: before }))
    try {
      await this.#write(back, this.#checkpoint.entries, false)
    } catch {
      await this.#leave(why)
    }
    throw why
  }

  /** Nobody knows whether the container has what counts: the next one to open it looks at all of its files. */
  async #leave(why: unknown): Promise<never> {
    await this.#connection.close()
    throw changesUnsaved(why)
  }

  async #saveUnsaved(): Promise<void> {
    const save = this.#unsaved
    if (!save) return
    try {
      await save()
    } catch (error) {
      if (mayPassLater(error)) throw error
      await this.#leave(error)
    }
    this.#unsaved = undefined
  }

  async #commitApplied(plan: ChangePlan, { version, beside }: AppliedChanges): Promise<StoredChangeSet | null> {
    const { id, about } = version
    const present = about.by === 'revert' ? [] : plan.present
    const set: StoredChangeSet = { id, kind: 'version', at: Date.now(), about, changes: [...plan.changes, ...present] }
    const put = plan.changes.flatMap(({ after }) => after ?? [])
    const deleted = plan.changes.flatMap(({ path, after }) => (after ? [] : [path]))
    const made = set.changes.length > 0 ? set : null
    const { drop = [], keep = [] } = beside?.(made) ?? {}
    await this.#checkpoint.commit({ put, deleted, drop, keep: made ? [...keep, made] : keep })
    return made
  }

  /**
   * Writes changes whose content is in the checkpoint into a container that this instance has created, and that has `entries`.
   * The checkpoint stays as it is.
   */
  write(changes: readonly StoredChange[], entries: Checkpoint['entries']): Promise<void> {
    return this.inTurn(() => this.#write(changes, entries, true))
  }

  /** Deletes first, the deepest path first, because a folder may become a file. */
  async #write(changes: readonly StoredChange[], entries: Checkpoint['entries'], isOwnVersion: boolean): Promise<void> {
    const gone = changes.filter(({ after }) => !after).map(({ path }) => path)
    const after = changes.flatMap((change) => change.after ?? [])
    const folders = new Map(parentsOf(changes, entries).map((dir) => [dir.path, dir]))
    for (const entry of after) if (entry.type === 'dir') folders.set(entry.path, entry)
    const batch = new RestoreBatch(this.#connection, isOwnVersion)
    for (const path of gone.toSorted((a, b) => depth(b) - depth(a))) await batch.remove(path)
    await writeEntries(batch, this.#checkpoint, after, [...folders.values()])
    const [failed] = batch.failed
    if (failed) throw notApplied(failed.path, failed.reason)
  }

  async #sync({ version, full = false, everything = false }: SyncOptions): Promise<ChangesResult['skipped']> {
    await this.#saveUnsaved()
    await this.#checkpoint.settle()
    const { id, about } = version ?? { id: `background:${randomUUID()}`, about: { by: 'background' } }
    const skipped: ChangesResult['skipped'] = []
    if (everything) this.#census ??= { seen: new Set(), folders: new Set(), skipped: [] }
    for (let page = 0; ; page++) {
      if (page === MAX_PAGES) throw new AppError('unavailable', 'checkpoint_failed', 'The workspace keeps changing.')
      const changes = await this.#connection.changes({ ack: this.#ack, full: full && page === 0 })
      const put: WorkspaceEntry[] = []
      for (const entry of changes.put) {
        this.#census?.seen.add(entry.path)
        if (entry.type === 'dir') this.#census?.folders.add(entry.path)
        put.push(await this.#keep(entry))
      }
      for (const { path } of changes.skipped) this.#census?.seen.add(path)
      this.#census?.skipped.push(...changes.skipped)
      const last = !changes.more
      const gone = this.#census && last ? this.#unseen(this.#census) : []
      const deleted = [...changes.deleted, ...gone]
      const found = this.#found(put, deleted)
      const set: StoredChangeSet = { id, kind: 'version', at: Date.now(), about, changes: found }
      const keep = found.length > 0 ? [set] : []
      if (put.length > 0 || deleted.length > 0) await this.#checkpoint.commit({ put, deleted, keep })
      this.#ack = changes.seq
      skipped.push(...changes.skipped)
      if (!last) continue
      this.#census = undefined
      await this.#linkRenames(id)
      return skipped
    }
  }

  /** Contents can be compared only when they are stored. */
  async #linkRenames(id: string): Promise<void> {
    const version = this.version(id)
    if (!version) return
    const linked = await linkRenames(this.#checkpoint, version.changes)
    if (linked === version.changes) return
    const changes = linked.filter(({ from }) => from !== undefined)
    await this.#checkpoint.commit({ put: [], deleted: [], keep: [{ ...version, changes }] })
  }

  #found(put: WorkspaceEntry[], deleted: string[]): StoredChange[] {
    const { entries } = this.#checkpoint
    const changed = put.map(
      (after): StoredChange => ({ path: after.path, before: entries.get(after.path) ?? null, after })
    )
    const gone = deleted.map((path): StoredChange => ({ path, before: entries.get(path) ?? null, after: null }))
    return [...changed, ...gone].filter(({ before, after }) => !isSameEntry(before, after))
  }

  /** The content of a folder that could not be read was not seen either, and is kept. */
  #unseen({ seen, folders, skipped }: Census): string[] {
    const closed = closedOf(folders, skipped)
    const unseen = [...this.#checkpoint.entries.keys()].filter((path) => !seen.has(path))
    return closed.size === 0 ? unseen : unseen.filter((path) => !isBelow(fromWire(path), closed))
  }

  async #keep(entry: ChangesResult['put'][number]): Promise<WorkspaceEntry> {
    const { data, ...plain } = entry
    if (plain.type !== 'file') return plain
    if (data !== undefined) return { ...plain, ...(await this.#checkpoint.addBlob(Buffer.from(data, 'base64'))) }
    if (this.#checkpoint.has(plain.hash)) return plain
    return { ...plain, ...(await this.#checkpoint.addBlob(this.#fetch(plain))) }
  }

  async *#fetch(entry: FileEntry): AsyncIterable<Uint8Array> {
    // A file that grows while it is read ends at its announced size; the next checkpoint has the rest.
    for (let offset = 0; offset < entry.size; ) {
      const length = Math.min(CHUNK_BYTES, entry.size - offset)
      const reply = await this.#connection.fetch({ path: entry.path, offset, length })
      let received = 0
      for (const piece of piecesOf(reply, length)) {
        received += piece.length
        yield piece
      }
      offset += received
      if (reply.eof || received === 0) return
    }
  }

  /** Writes the checkpoint's files into the empty workspace of a new container; returns the number of files and which failed. */
  async restore(): Promise<{ files: number; failed: RestoreResult['failed'] }> {
    const entries = [...this.#checkpoint.entries.values()]
    const batch = new RestoreBatch(this.#connection, true)
    const folders = entries.filter((entry) => entry.type === 'dir')
    await writeEntries(batch, this.#checkpoint, entries, folders)
    return { files: entries.filter((entry) => entry.type === 'file').length, failed: batch.failed }
  }
}

/** The existing folders whose content changes: writing into them changes their times, and their modes if they are read-only. */
function parentsOf(changes: readonly StoredChange[], entries: Checkpoint['entries']): DirEntry[] {
  const gone = new Set(changes.filter(({ after }) => after?.type !== 'dir').map(({ path }) => path))
  const parents = new Set<string>()
  for (const { path } of changes) {
    for (let raw = parentOf(fromWire(path)); raw !== ''; raw = parentOf(raw)) parents.add(toWire(raw))
  }
  return [...parents].flatMap((path) => {
    const entry = entries.get(path)
    return entry?.type === 'dir' && !gone.has(path) ? [entry] : []
  })
}

function notApplied(path: string, reason: string): AppError {
  const message = `The changes could not be written to the sandbox (${path.slice(0, 100)}): ${reason} Try again; every version is still stored.`
  return new AppError('unavailable', 'changes_not_applied', message)
}

/** The fetched range with its holes filled with zeros; never more than requested. */
function* piecesOf({ data, holes }: FetchResult, wanted: number): Iterable<Uint8Array> {
  const bytes = Buffer.from(data, 'base64')
  let used = 0
  let done = 0
  for (const { at, length } of [...holes, { at: wanted, length: 0 }]) {
    const isInOrder = at >= done && at + length <= wanted
    if (!isInOrder) throw new AppError('unavailable', 'checkpoint_failed', 'The sandbox described a file incorrectly.')
    const piece = bytes.subarray(used, used + at - done)
    used += piece.length
    done += piece.length
    if (piece.length > 0) yield piece
    if (done < at) return
    if (length > 0) yield ZEROS.subarray(0, length)
    done += length
  }
}

/** The folders that exist and were skipped, as raw paths. */
function closedOf(folders: ReadonlySet<string>, skipped: ChangesResult['skipped']): Set<string> {
  return new Set(skipped.filter(({ path }) => folders.has(path)).map(({ path }) => fromWire(path)))
}

function isBelow(raw: string, folders: ReadonlySet<string>): boolean {
  for (let at = parentOf(raw); at !== ''; at = parentOf(at)) if (folders.has(at)) return true
  return false
}
