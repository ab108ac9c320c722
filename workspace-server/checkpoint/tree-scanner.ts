import type { Stats } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { HardLinks } from './hard-links.ts'
import { childOf, parentOf, type RawPath } from './raw-path.ts'
import type { RawTree } from './raw-tree.ts'
import type { Dirty, TreeWatcher } from './tree-watcher.ts'
import { entryFrom, type IndexEntry, MAX_ENTRIES, type WorkspaceIndex } from './workspace-index.ts'

/** How long other requests may have to wait during a walk. */
const TURN_MS = 15
/** The kernel's path limit is 4096 bytes, but moving can nest folders deeper. */
const MAX_DEPTH = 500

/** A thousand take about 20 ms. */
const MAX_WATCHED_AT_ONCE = 1000

export const REASONS = {
  special: 'Sockets, pipes and devices are not stored.',
  unreadable: 'Its permissions do not allow reading it.',
  tooMany: `There are more than ${MAX_ENTRIES} files.`,
  tooLarge: 'With it the files would be larger than twice the workspace.',
  tooLong: 'Its path is too long for the kernel.',
  tooDeep: `It is nested more than ${MAX_DEPTH} folders deep.`
}

/** Updates the index from the files: all of them, or those named. It does not read content. */
export class TreeScanner {
  /** Whether something was left out because there was no space. Only a full scan can tell if there is space now. */
  leftOut = false
  /** The limit for the sizes of all files together; a sparse file counts in full. */
  maxBytes = 0
  readonly #tree: RawTree
  readonly #index: WorkspaceIndex
  readonly #watcher: TreeWatcher
  readonly #links: HardLinks
  #turnEnds = 0

  constructor(tree: RawTree, index: WorkspaceIndex, watcher: TreeWatcher) {
    this.#tree = tree
    this.#index = index
    this.#watcher = watcher
    this.#links = new HardLinks(index)
  }

  /** Scans everything. With `reread`, also reads every file again, because some ways of writing leave no trace. */
  async walk(dirty: Dirty, reread: boolean): Promise<void> {
    this.leftOut = false
    this.#watcher.add('')
    await this.#folder('', reread, true)
    await this.visit(dirty)
    for (const raw of this.#index.skipped.keys())
      if (this.#tree.stat(raw) === undefined) this.#index.skipped.delete(raw)
  }

  /**
   * Watches the folders of an index that nothing but a restore has filled, instead of a walk. Returns false if there are other
   * names than that, or too many folders to do it at once.
   */
  watchRestored(): boolean {
    const folders = ['', ...[...this.#index.entries].flatMap(([raw, { type }]) => (type === 'dir' ? [raw] : []))]
    if (folders.length > MAX_WATCHED_AT_ONCE) return false
    // Watch first, as in a walk.
    for (const folder of folders) this.#watcher.add(folder)
    return folders.every((folder) => {
      const names = this.#tree.names(folder)
      const known = this.#index.names(folder)
      return names !== null && names.length === known.size && names.every((name) => known.has(name))
    })
  }

  /** Examines what is noted as changed. Parents come first, because whether a child counts depends on its parent. */
  async visit({ paths, renamed }: Dirty): Promise<void> {
    for (const raw of [...paths].sort()) {
      if (raw === '' || !this.#index.isFolder(parentOf(raw))) continue
      await this.#examine(raw, true, renamed.has(raw))
    }
    for (const raw of this.#links.siblings()) await this.#examine(raw, true, false)
    this.#links.siblings() // The siblings' own siblings are the files that we came from.
  }

  async #folder(folder: RawPath, reread: boolean, deep: boolean): Promise<void> {
    const names = this.#tree.names(folder)
    if (names === null) {
      this.#note(folder, REASONS.unreadable)
      return this.#watcher.drop(folder)
    }
    this.#index.skipped.delete(folder)
    const gone = new Set(this.#index.names(folder))
    for (const name of names) {
      gone.delete(name)
      await this.#examine(childOf(folder, name), reread, deep)
    }
    for (const name of gone) this.#remove(childOf(folder, name))
  }

  /** With `deep`, a known folder is scanned and watched again as well. */
  async #examine(raw: RawPath, reread: boolean, deep: boolean): Promise<void> {
    await this.#breathe()
    const stats = this.#tree.stat(raw)
    if (stats === undefined) return this.#remove(raw)
    if (stats === 'too long') return this.#note(raw, REASONS.tooLong)
    if (stats === 'denied') {
      // The kernel's notices about a closed folder include one for a child with the folder's own name, which may not exist.
      if (this.#index.skipped.get(parentOf(raw)) !== REASONS.unreadable) this.#note(raw, REASONS.unreadable)
      return this.#watcher.drop(parentOf(raw))
    }
    if (stats.isDirectory()) return this.#examineFolder(raw, stats, reread, deep)
    if (this.#index.entries.get(raw)?.type === 'dir') this.#remove(raw)
    if (stats.isSymbolicLink()) return this.#examineLink(raw, stats)
    if (stats.isFile()) return this.#examineFile(raw, stats, reread)
    this.#index.skip(raw, REASONS.special)
  }

  async #examineFolder(raw: RawPath, stats: Stats, reread: boolean, deep: boolean): Promise<void> {
    const old = this.#index.entries.get(raw)
    const isSame = old?.type === 'dir' && old.ino === stats.ino
    if (!isSame) {
      this.#remove(raw)
      if (!this.#hasPlace(raw)) return
      if (raw.split('/').length > MAX_DEPTH) return this.#note(raw, REASONS.tooDeep)
      this.#put(raw, entryFrom('dir', stats))
    } else {
      const seen = entryFrom('dir', stats)
      const differs = old.mode !== seen.mode || old.mtimeMs !== seen.mtimeMs
      if (differs) this.#put(raw, { ...seen, names: old.names })
    }
    // A folder that was closed to us is not watched; when it opens, everything in it is new.
    if (isSame && !deep && (this.#watcher.failed || this.#watcher.has(raw))) return
    // Watch first, then scan: what is created in between is seen twice rather than never.
    this.#watcher.add(raw)
    await this.#folder(raw, reread, true)
  }

  #examineLink(raw: RawPath, stats: Stats): void {
    if (stats.nlink > 1) this.#links.add(raw, stats.ino)
    const target = this.#tree.target(raw)
    if (target === null) {
      this.#watcher.mark(raw)
      return
    }
    const old = this.#index.entries.get(raw)
    const entry = { ...entryFrom('link', stats), target }
    if (old?.type === 'link' && old.target === target && old.mtimeMs === entry.mtimeMs) return
    if (old !== undefined || this.#hasPlace(raw)) this.#put(raw, entry)
  }

  #examineFile(raw: RawPath, stats: Stats, reread: boolean): void {
    const old = this.#index.entries.get(raw)
    if (stats.nlink > 1) this.#links.add(raw, stats.ino)
    const hasRoom = this.#index.hasRoomFor(raw, stats.size, this.maxBytes)
    if (!hasRoom) this.leftOut = true
    if (isClosed(stats) || !hasRoom) {
      this.#index.skip(raw, hasRoom ? REASONS.unreadable : REASONS.tooLarge)
      return
    }
    if (old === undefined && !this.#hasPlace(raw)) return
    const entry = entryFrom('file', stats)
    if (old?.type === 'file') {
      const looksSame = old.ctimeMs === entry.ctimeMs && old.size === entry.size && old.ino === entry.ino && !old.racy
      if (looksSame && !reread && !this.#index.skipped.has(raw)) return
      entry.hash = old.hash
      entry.changed = old.changed || old.mode !== entry.mode || old.mtimeMs !== entry.mtimeMs
    }
    this.#put(raw, entry)
  }

  #put(raw: RawPath, entry: IndexEntry): void {
    const old = this.#index.entries.get(raw)
    if (old !== undefined && old.ino !== entry.ino) this.#links.removed(old.ino)
    this.#index.set(raw, entry)
    this.#index.pending.add(raw)
  }

  #remove(raw: RawPath): void {
    this.#letGo(raw)
    this.#index.remove(raw)
  }

  #letGo(raw: RawPath): void {
    const entry = this.#index.entries.get(raw)
    if (entry?.type === 'dir') this.#watcher.drop(raw)
    else if (entry !== undefined) this.#links.removed(entry.ino)
    for (const name of entry?.names ?? []) this.#letGo(childOf(raw, name))
  }

  #hasPlace(raw: RawPath): boolean {
    if (this.#index.entries.size < MAX_ENTRIES) return true
    this.leftOut = true
    this.#index.skip(raw, REASONS.tooMany)
    return false
  }

  #note(raw: RawPath, reason: string): void {
    if (this.#index.skipped.get(raw) === reason) return
    this.#index.skipped.set(raw, reason)
    this.#index.pendingSkips.add(raw)
  }

  async #breathe(): Promise<void> {
    const now = performance.now()
    if (now < this.#turnEnds) return
    if (this.#turnEnds !== 0) await nextTurn()
    this.#turnEnds = performance.now() + TURN_MS
  }
}

/** Files here are our own, so the owner's right to read counts; root needs none. */
function isClosed(stats: Stats): boolean {
  return (stats.mode & 0o400) === 0 && process.getuid?.() !== 0
}
