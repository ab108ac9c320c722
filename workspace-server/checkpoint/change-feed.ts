/**
 * Tells the owner what changed in the workspace since the last state that it stored safely. Owns the sequence numbers and the
 * reports that are not acknowledged yet; the scanner finds the changes. Invariant: a change stays on the list until a reply with
 * it is acknowledged.
 */
import { statfsSync } from 'node:fs'
import type { ChangesParams, ChangesResult } from '../protocol.ts'
import { type ChangePage, takePage } from './change-page.ts'
import type { RawTree } from './raw-tree.ts'
import type { TreeScanner } from './tree-scanner.ts'
import type { TreeWatcher } from './tree-watcher.ts'
import type { WorkspaceIndex } from './workspace-index.ts'

export class ChangeFeed {
  readonly #tree: RawTree
  readonly #index: WorkspaceIndex
  readonly #watcher: TreeWatcher
  readonly #scanner: TreeScanner
  /** Never repeats a number of an earlier server: an acknowledgement meant for that server must not count for ours. */
  #seq = Date.now() * 1000
  #acked = 0
  #said: { seq: number; page: ChangePage } | undefined
  #walked = false

  constructor(parts: { tree: RawTree; index: WorkspaceIndex; watcher: TreeWatcher; scanner: TreeScanner }) {
    this.#tree = parts.tree
    this.#index = parts.index
    this.#watcher = parts.watcher
    this.#scanner = parts.scanner
  }

  async changes({ ack, full = false }: ChangesParams): Promise<ChangesResult> {
    const isNextPage = this.#acknowledge(ack)
    await this.#refresh(full, isNextPage)
    const page = await takePage(this.#tree, this.#index)
    this.#seq += 1
    this.#said = { seq: this.#seq, page }
    return { seq: this.#seq, ...page.reply }
  }

  /** Call this when everything has just been examined and is watched: the next scan need not be a full one. */
  trustIndex(): void {
    this.#walked = true
  }

  /** Returns true if this requests the next page of the same scan. */
  #acknowledge(ack: number): boolean {
    const said = this.#said
    this.#said = undefined
    if (said !== undefined && ack === said.seq) {
      this.#acked = ack
      return said.page.reply.more
    }
    if (ack === this.#acked) {
      if (said !== undefined) this.#sayAgain(said.page)
      return false
    }
    // An owner that remembers something else than we do starts from nothing.
    this.#acked = 0
    this.#index.forgetReports()
    return false
  }

  #sayAgain({ paths, skips }: ChangePage): void {
    for (const raw of paths) {
      this.#index.pending.add(raw)
      const entry = this.#index.entries.get(raw)
      if (entry !== undefined) entry.changed = true
    }
    for (const raw of skips) this.#index.pendingSkips.add(raw)
  }

  async #refresh(full: boolean, isNextPage: boolean): Promise<void> {
    // The next page belongs to the scan that has been made. If it included new changes, a program that keeps writing would make
    // it endless.
    if (isNextPage) return
    this.#tree.openRoot()
    this.#scanner.maxBytes = 2 * workspaceSize(this.#tree)
    const inTime = this.#walked && (await this.#watcher.sync())
    const dirty = this.#watcher.take()
    if (full || !inTime || this.#scanner.leftOut) await this.#scanner.walk(dirty, full)
    else await this.#scanner.visit(dirty)
    this.#walked = true
  }
}

function workspaceSize(tree: RawTree): number {
  const { blocks, bsize } = statfsSync(tree.path(''))
  return blocks * bsize
}
