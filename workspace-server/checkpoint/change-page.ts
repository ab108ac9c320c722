import type { ChangesResult, WorkspaceEntry } from '../protocol.ts'
import { type FileContent, readContent } from './file-content.ts'
import { type RawPath, toWire } from './raw-path.ts'
import type { RawTree } from './raw-tree.ts'
import { REASONS } from './tree-scanner.ts'
import { type IndexEntry, type WorkspaceIndex, wholeMicroseconds } from './workspace-index.ts'

const PAGE_CHARS = 2 * 1024 * 1024
const PAGE_ITEMS = 5000
/** Limits how long a page of large files takes. */
const PAGE_READ_BYTES = 64 * 1024 * 1024
const ITEM_CHARS = 200

/** The changes of one reply and their paths, in case it has to be sent again. */
export interface ChangePage {
  reply: Pick<ChangesResult, 'put' | 'deleted' | 'skipped' | 'more'>
  paths: RawPath[]
  skips: RawPath[]
}

/** Takes pending changes from the index until the page is full. Parents come before children. */
export async function takePage(tree: RawTree, index: WorkspaceIndex): Promise<ChangePage> {
  return new PageBuilder(tree, index).build()
}

class PageBuilder {
  readonly #tree: RawTree
  readonly #index: WorkspaceIndex
  readonly #reply: ChangePage['reply'] = { put: [], deleted: [], skipped: [], more: false }
  readonly #paths: RawPath[] = []
  readonly #skips: RawPath[] = []
  #chars = 0
  #items = 0
  #readBytes = 0

  constructor(tree: RawTree, index: WorkspaceIndex) {
    this.#tree = tree
    this.#index = index
  }

  async build(): Promise<ChangePage> {
    const waiting = [...this.#index.pending].sort()
    for (const raw of waiting) {
      if (this.#index.entries.has(raw)) continue
      if (this.#isFull()) break
      this.#delete(raw)
    }
    for (const raw of waiting) {
      const entry = this.#index.entries.get(raw)
      if (entry === undefined) continue
      if (this.#isFull()) break
      await this.#put(raw, entry)
    }
    for (const raw of this.#index.pendingSkips) {
      if (this.#isFull()) break
      this.#skip(raw)
    }
    this.#reply.more = this.#isFull() && this.#index.pending.size + this.#index.pendingSkips.size > 0
    return { reply: this.#reply, paths: this.#paths, skips: this.#skips }
  }

  #isFull(): boolean {
    return this.#chars >= PAGE_CHARS || this.#items >= PAGE_ITEMS || this.#readBytes >= PAGE_READ_BYTES
  }

  #count(raw: RawPath, extraChars = 0): void {
    this.#items += 1
    this.#chars += ITEM_CHARS + 2 * raw.length + extraChars
  }

  #delete(raw: RawPath): void {
    this.#index.pending.delete(raw)
    this.#paths.push(raw)
    this.#reply.deleted.push(toWire(raw))
    this.#count(raw)
  }

  #skip(raw: RawPath): void {
    this.#index.pendingSkips.delete(raw)
    const reason = this.#index.skipped.get(raw)
    if (reason === undefined) return
    this.#skips.push(raw)
    this.#reply.skipped.push({ path: toWire(raw), reason })
    this.#count(raw)
  }

  async #put(raw: RawPath, entry: IndexEntry): Promise<void> {
    if (entry.type !== 'file') return this.#report(raw, entry, null)
    const content = await readContent(this.#tree, raw)
    // Removed from the list only now: if the file was swapped for something else, the next scan finds out what it is.
    if (content === 'gone') return
    if (content === 'denied') return this.#deny(raw)
    this.#readBytes += content.size
    const unchanged = !entry.changed && content.hash === entry.hash
    this.#learn(raw, entry, content)
    if (unchanged) this.#index.pending.delete(raw)
    else this.#report(raw, entry, content.data)
  }

  #deny(raw: RawPath): void {
    this.#index.skip(raw, REASONS.unreadable)
    this.#delete(raw)
  }

  /** The entry describes what was read, not what was there when the file was first examined. */
  #learn(raw: RawPath, entry: IndexEntry, { hash, size, stats, racy }: FileContent): void {
    entry.hash = hash
    entry.mode = stats.mode & 0o7777
    entry.mtimeMs = wholeMicroseconds(stats.mtimeMs)
    entry.ctimeMs = stats.ctimeMs
    entry.ino = stats.ino
    entry.racy = racy
    entry.stale = false
    this.#index.set(raw, { ...entry, size })
  }

  #report(raw: RawPath, entry: IndexEntry, data: Buffer | null): void {
    this.#index.pending.delete(raw)
    const current = this.#index.entries.get(raw) ?? entry
    current.changed = false
    const text = data?.toString('base64')
    this.#paths.push(raw)
    this.#reply.put.push({ ...wireEntry(raw, current), ...(text === undefined ? {} : { data: text }) })
    this.#count(raw, (text?.length ?? 0) + 2 * current.target.length)
  }
}

function wireEntry(raw: RawPath, entry: IndexEntry): WorkspaceEntry {
  const { mode, mtimeMs, size, hash, target } = entry
  const path = toWire(raw)
  if (entry.type === 'dir') return { path, type: 'dir', mode, mtimeMs }
  if (entry.type === 'link') return { path, type: 'link', target: toWire(target), mtimeMs }
  return { path, type: 'file', mode, mtimeMs, size, hash }
}
