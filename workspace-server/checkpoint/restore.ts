import type { Stats } from 'node:fs'
import { hasCode } from '../../server/lib/errors.ts'
import type { RestoredEntry, RestoreParams, RestoreResult } from '../protocol.ts'
import { asToolError } from '../tools/system-error.ts'
import { fromWire, parentOf, pathFromWire, type RawPath } from './raw-path.ts'
import type { RawTree } from './raw-tree.ts'
import { finishFolder, prepareFolder, removeEntry, restoreFile, restoreFolder, restoreLink } from './restore-entry.ts'
import { entryFrom, type WorkspaceIndex } from './workspace-index.ts'

const NOTHING = new Uint8Array()
const NO_ROOM = ['ENOSPC', 'EDQUOT', 'EFBIG']

interface FolderState {
  mode: number
  mtimeMs: number
}

/** Restores the owner's copy of the files. The owner knows what it restores, so that is not reported as a change. */
export class Restorer {
  readonly #tree: RawTree
  readonly #index: WorkspaceIndex
  /** The final mode and times of folders, set after their children, which may come in later calls. */
  readonly #folders = new Map<RawPath, FolderState>()

  #count = 0
  #failures = 0

  constructor(tree: RawTree, index: WorkspaceIndex) {
    this.#tree = tree
    this.#index = index
  }

  restore({ deleted = [], entries, content = NOTHING }: RestoreParams): RestoreResult {
    const contentOf = contentReader(entries, content)
    const failed: RestoreResult['failed'] = []
    const touched = new Set<RawPath>()
    const restored: [RawPath, RestoredEntry, Stats | undefined][] = []
    const attempt = (path: string, job: (raw: RawPath) => void) => {
      const raw = pathFromWire(path)
      try {
        if (raw === null) throw new Error('It is not a path inside the workspace.')
        job(raw)
      } catch (error) {
        failed.push({ path, reason: reasonOf(error, path), noRoom: hasCode(error, ...NO_ROOM) })
      }
    }
    for (const path of deleted) attempt(path, (raw) => this.#remove(raw, touched))
    const removed = deleted.length - failed.length
    for (const entry of entries) {
      const data = contentOf(entry)
      attempt(entry.path, (raw) => {
        prepareFolder(this.#tree, parentOf(raw), touched)
        restored.push([raw, entry, this.#restoreOne(raw, entry, data, touched)])
      })
    }
    this.#finishFolders(touched)
    for (const [raw, entry, stats] of restored) this.#learn(raw, entry, stats ?? this.#tree.stat(raw))
    this.#count += 1
    this.#failures += failed.length
    return deleted.length > 0 ? { failed, removed } : { failed }
  }

  /** There was a restore, and everything in it is in the index as it is on disk. */
  get isComplete(): boolean {
    return this.#count > 0 && this.#failures === 0
  }

  /** The files are in use from now on, so folders are left as they are. */
  settle(): void {
    this.#folders.clear()
  }

  #remove(raw: RawPath, touched: Set<RawPath>): void {
    removeEntry(this.#tree, raw, touched)
    this.#folders.delete(raw)
    this.#index.remove(raw)
    this.#index.pending.delete(raw)
  }

  #restoreOne(raw: RawPath, entry: RestoredEntry, data: Uint8Array, touched: Set<RawPath>): Stats | undefined {
    if (entry.type === 'file') return restoreFile(this.#tree, raw, entry, data)
    if (entry.type === 'link') restoreLink(this.#tree, raw, entry.target, entry.mtimeMs)
    else {
      restoreFolder(this.#tree, raw)
      this.#folders.set(raw, { mode: entry.mode, mtimeMs: entry.mtimeMs })
      touched.add(raw)
    }
    return undefined
  }

  /** Deepest first: setting a child's mode needs access to its parent. */
  #finishFolders(touched: ReadonlySet<RawPath>): void {
    for (const raw of [...touched].sort().reverse()) {
      const look = this.#folders.get(raw)
      if (look === undefined) continue
      try {
        finishFolder(this.#tree, raw, look.mode, look.mtimeMs)
        const [stats, known] = [this.#tree.stat(raw), this.#index.entries.get(raw)]
        if (typeof stats === 'object' && known?.type === 'dir')
          this.#index.set(raw, { ...entryFrom('dir', stats), names: known.names, changed: false })
      } catch {
        // A folder with the wrong mode or times loses no content; the next scan reports it as it is.
        this.#failures += 1
      }
    }
  }

  /** Parents come first in a restore, so they are known. The next scan finds and reports others. */
  #learn(raw: RawPath, entry: RestoredEntry, stats: ReturnType<RawTree['stat']>): void {
    if (typeof stats !== 'object' || !this.#index.isFolder(parentOf(raw))) {
      this.#failures += 1
      return
    }
    const old = this.#index.entries.get(raw)
    if (old?.type === 'dir' && entry.type !== 'dir') this.#index.remove(raw)
    const learnt = { ...entryFrom(entry.type, stats), stale: false, changed: false }
    if (entry.type === 'file') learnt.hash = entry.hash
    if (entry.type === 'link') learnt.target = fromWire(entry.target)
    if (entry.type === 'dir' && old?.type === 'dir') learnt.names = old.names
    this.#index.set(raw, learnt)
    this.#index.pending.delete(raw)
  }
}

/** Takes the content of one entry after another. */
function contentReader(entries: readonly RestoredEntry[], content: Uint8Array): (entry: RestoredEntry) => Uint8Array {
  const bytes = entries.reduce((sum, entry) => sum + (entry.bytes ?? 0), 0)
  if (bytes !== content.length) throw new Error('"content" must have as many bytes as the entries say.')
  let at = 0
  return (entry) => {
    if (entry.bytes === undefined) return Buffer.from(entry.data ?? '', 'base64')
    at += entry.bytes
    return content.subarray(at - entry.bytes, at)
  }
}

function reasonOf(error: unknown, path: string): string {
  const translated = asToolError(error, path)
  return translated instanceof Error ? translated.message : 'It could not be written.'
}
