/**
 * Moves a session's files between its container and its checkpoint. It does not trust what the container says about content:
 * everything is stored under the hash of the bytes that arrived.
 */

import { fromWire, parentOf } from '../../../workspace-server/checkpoint/raw-path.ts'
import { zeroRuns } from '../../../workspace-server/checkpoint/zero-runs.ts'
import type {
  ChangesResult,
  FetchResult,
  RestoreParams,
  RestoreResult,
  WorkspaceEntry
} from '../../../workspace-server/protocol.ts'
import { AppError } from '../../lib/errors.ts'
import type { WorkspaceConnection } from '../../sandbox/port.ts'
import type { Checkpoint } from '../../storage/checkpoint-store.ts'

const CHUNK_BYTES = 1024 * 1024
const BATCH_BYTES = 2 * 1024 * 1024
const BATCH_ENTRIES = 500
/** 256 MB of small files arrive in about 130 pages; no workspace of ours has ten times that. */
const MAX_PAGES = 2000
const ZEROS = Buffer.alloc(CHUNK_BYTES)

type FileEntry = Extract<WorkspaceEntry, { type: 'file' }>

export interface SyncOptions {
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
  /** What a server without state has reported so far. It counts until a sync succeeds, because what was acknowledged is not reported again. */
  #census: Census | undefined
  #tail: Promise<unknown> = Promise.resolve()

  constructor(connection: WorkspaceConnection, checkpoint: Checkpoint) {
    this.#connection = connection
    this.#checkpoint = checkpoint
  }

  /** Brings the checkpoint up to date and returns what could not be stored. Calls are queued. */
  sync(options: SyncOptions = {}): Promise<ChangesResult['skipped']> {
    const run = this.#tail.then(() => this.#sync(options))
    this.#tail = run.catch(() => {})
    return run
  }

  async #sync({ full = false, everything = false }: SyncOptions): Promise<ChangesResult['skipped']> {
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
      if (put.length > 0 || deleted.length > 0) await this.#checkpoint.commit({ put, deleted })
      this.#ack = changes.seq
      skipped.push(...changes.skipped)
      if (!last) continue
      this.#census = undefined
      return skipped
    }
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

  /** Writes the checkpoint's files into an empty workspace; returns the number of files and which failed. */
  async restore(): Promise<{ files: number; failed: RestoreResult['failed'] }> {
    const entries = [...this.#checkpoint.entries.values()]
    const dirs = entries.filter((entry) => entry.type === 'dir').sort((a, b) => depth(a.path) - depth(b.path))
    const files = entries.filter((entry) => entry.type === 'file')
    const batch = new RestoreBatch(this.#connection)
    // A read-only folder gets its real mode after its files are written.
    for (const dir of dirs) await batch.add({ ...dir, mode: 0o700 })
    for (const file of files) await this.#restoreFile(batch, file)
    for (const entry of entries) if (entry.type === 'link') await batch.add(entry)
    for (const dir of dirs.reverse()) await batch.add(dir)
    await batch.flush()
    return { files: files.length, failed: batch.failed }
  }

  async #restoreFile(batch: RestoreBatch, file: FileEntry): Promise<void> {
    if (file.size === 0) return batch.add({ ...file, data: '' })
    let offset = 0
    for await (const chunk of this.#checkpoint.read(file.hash, CHUNK_BYTES)) {
      for (const { at, length, isZero } of zeroRuns(chunk)) {
        const part = isZero ? '' : Buffer.from(chunk.subarray(at, at + length)).toString('base64')
        // The first part creates the file in its full size, so the zeros that follow already exist as a hole.
        if (!isZero || offset + at === 0) await batch.add({ ...file, offset: offset + at, data: part })
      }
      offset += chunk.length
    }
  }
}

class RestoreBatch {
  readonly failed: RestoreResult['failed'] = []
  readonly #connection: WorkspaceConnection
  #entries: RestoreParams['entries'] = []
  #bytes = 0

  constructor(connection: WorkspaceConnection) {
    this.#connection = connection
  }

  async add(entry: RestoreParams['entries'][number]): Promise<void> {
    const bytes = (entry.data?.length ?? 0) + entry.path.length + 100
    if (this.#bytes + bytes > BATCH_BYTES || this.#entries.length === BATCH_ENTRIES) await this.flush()
    this.#entries.push(entry)
    this.#bytes += bytes
  }

  async flush(): Promise<void> {
    if (this.#entries.length === 0) return
    const entries = this.#entries
    this.#entries = []
    this.#bytes = 0
    const { failed } = await this.#connection.restore({ entries })
    this.failed.push(...failed)
  }
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

const depth = (path: string): number => path.split('/').length
