import type { Stats } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { HardLinks } from './hard-links.ts'
import { childOf, parentOf, type RawPath } from './raw-path.ts'
import type { RawTree } from './raw-tree.ts'
import type { Dirty, TreeWatcher } from './tree-watcher.ts'
import { entryFrom, type IndexEntry, MAX_ENTRIES, type WorkspaceIndex } from './workspace-index.ts'

/** How long other requests may have to wait while a walk goes on. */
const TURN_MS = 15
/** The path limit of the kernel is 4096 bytes, but folders can be nested deeper by moving. */
const MAX_DEPTH = 500

export const REASONS = {
  special: 'Sockets, pipes and devices are not kept.',
  unreadable: 'Its permissions do not allow reading it.',
  tooMany: `There are more than ${MAX_ENTRIES} files.`,
  tooLarge: 'With it the files would be larger than twice the workspace.',
  tooDeep: `It is nested more than ${MAX_DEPTH} folders deep.`
}

/** Brings the index up to date with the files: those named, or all of them. Contents are not read here. */
export class TreeScanner {
  /** Something was left out for want of room: whether there is room now, only a look at everything tells. */
  leftOut = false
  readonly #tree: RawTree
  readonly #index: WorkspaceIndex
  readonly #watcher: TreeWatcher
  readonly #links: HardLinks
  readonly #maxBytes: () => number
  #turnEnds = 0

  constructor(tree: RawTree, index: WorkspaceIndex, watcher: TreeWatcher, maxBytes: () => number) {
    this.#tree = tree
    this.#index = index
    this.#watcher = watcher
    this.#links = new HardLinks(index)
    this.#maxBytes = maxBytes
  }

  /** Looks at everything. `reread`: also reads every file again, because some ways of writing leave no trace. */
  async walk(dirty: Dirty, reread: boolean): Promise<void> {
    this.leftOut = false
    this.#watcher.add('')
    await this.#folder('', reread, true)
    await this.visit(dirty)
  }

  /** Looks at what is noted as changed. Parents first: whether a child counts depends on its parent. */
  async visit({ paths, renamed }: Dirty): Promise<void> {
    for (const raw of [...paths].sort()) {
      if (raw === '' || !this.#index.isFolder(parentOf(raw))) continue
      await this.#examine(raw, true, renamed.has(raw))
    }
    for (const raw of this.#links.siblings()) await this.#examine(raw, true, false)
  }

  async #folder(folder: RawPath, reread: boolean, deep: boolean): Promise<void> {
    const names = this.#tree.names(folder)
    if (names === null) {
      if (this.#tree.stat(folder)?.isDirectory()) this.#note(folder, REASONS.unreadable)
      return
    }
    const gone = new Set(this.#index.names(folder))
    for (const name of names) {
      gone.delete(name)
      await this.#examine(childOf(folder, name), reread, deep)
    }
    for (const name of gone) this.#remove(childOf(folder, name))
    for (const raw of [...this.#index.skipped.keys()])
      if (parentOf(raw) === folder && !names.includes(raw.slice(folder === '' ? 0 : folder.length + 1)))
        this.#index.skipped.delete(raw)
  }

  /** `deep`: a folder that is known already is looked into as well, and watched anew. */
  async #examine(raw: RawPath, reread: boolean, deep: boolean): Promise<void> {
    await this.#breathe()
    const stats = this.#tree.stat(raw)
    if (stats === undefined) return this.#remove(raw)
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
    if (isSame && !deep) return
    // Watch first, then look: what is made in between is seen twice rather than never.
    this.#watcher.add(raw)
    await this.#folder(raw, reread, true)
  }

  #examineLink(raw: RawPath, stats: Stats): void {
    const target = this.#tree.target(raw)
    if (target === null) return this.#watcher.mark(raw)
    const old = this.#index.entries.get(raw)
    const entry = { ...entryFrom('link', stats), target }
    if (old?.type === 'link' && old.target === target && old.mtimeMs === entry.mtimeMs) return
    if (old !== undefined || this.#hasPlace(raw)) this.#put(raw, entry)
  }

  #examineFile(raw: RawPath, stats: Stats, reread: boolean): void {
    const old = this.#index.entries.get(raw)
    if (stats.nlink > 1) this.#links.add(raw, stats.ino)
    if (!this.#index.hasRoomFor(raw, stats.size, this.#maxBytes())) {
      this.leftOut = true
      return this.#index.skip(raw, REASONS.tooLarge)
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
    this.#index.set(raw, entry)
    this.#index.pending.add(raw)
  }

  #remove(raw: RawPath): void {
    this.#unwatch(raw)
    this.#index.remove(raw)
  }

  #unwatch(raw: RawPath): void {
    const entry = this.#index.entries.get(raw)
    if (entry?.type !== 'dir') return
    this.#watcher.drop(raw)
    for (const name of entry.names ?? []) this.#unwatch(childOf(raw, name))
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
