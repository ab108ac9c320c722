/**
 * Notes which paths changed, from the kernel's notices, with one watch per folder. Invariant: unless `isLost`, every change
 * before a `sync` that returned true is in the next result of `take`. All watches of a process share one ordered queue, so when
 * our own sentinel file appears, everything before it has been seen.
 */
import { closeSync, type FSWatcher, mkdirSync, openSync, readFileSync, unlinkSync, watch } from 'node:fs'
import { join } from 'node:path'
import { hasCode } from '../../server/lib/errors.ts'
import { childOf, nameOf, type RawPath } from './raw-path.ts'
import type { RawTree } from './raw-tree.ts'

const DEFAULT_QUEUE = 16_384
const SYNC_MS = 1000
const MAX_SYNC_FAILURES = 3
const MAX_WATCHES = 20_000

export interface Dirty {
  /** Something about these changed. */
  paths: Set<RawPath>
  /** These were created, removed or moved, so a folder among them must be watched again. */
  renamed: Set<RawPath>
}

export class TreeWatcher {
  /** Watches are not available, so every scan must be a full one. */
  failed = false
  readonly #tree: RawTree
  readonly #sentinels: string
  readonly #watches = new Map<RawPath, FSWatcher>()
  #sentinelWatch: FSWatcher | undefined
  readonly #maxEvents: number
  #events = 0
  #dirty: Dirty = { paths: new Set(), renamed: new Set() }
  #awaited: { name: string; seen: () => void } | undefined
  #syncs = 0
  #syncFailures = 0

  constructor(tree: RawTree, stateFolder: string, maxEvents = halfOfQueue()) {
    this.#tree = tree
    this.#sentinels = join(stateFolder, 'sync')
    this.#maxEvents = maxEvents
  }

  /** The queue may have overflowed; the kernel reports that, but libuv does not pass it on. */
  get isLost(): boolean {
    return this.#events >= this.#maxEvents
  }

  /**
   * Watches a folder, again if it is already watched: the new watch starts before the old one ends, so that nothing is missed.
   */
  add(folder: RawPath): void {
    if (this.#watches.size >= MAX_WATCHES) this.#fail()
    if (this.failed) return
    try {
      const made = watch(this.#tree.path(folder), { persistent: false, encoding: 'latin1' }, (event, name) =>
        this.#note(folder, event, name)
      )
      made.on('error', () => this.#fail())
      this.#watches.get(folder)?.close()
      this.#watches.set(folder, made)
    } catch (error) {
      // If a folder is gone or closed to us, the others are still watched; its parent reports when that changes.
      if (!hasCode(error, 'ENOENT', 'ENOTDIR', 'EACCES', 'ELOOP')) this.#fail()
    }
  }

  drop(folder: RawPath): void {
    this.#watches.get(folder)?.close()
    this.#watches.delete(folder)
  }

  has(folder: RawPath): boolean {
    return this.#watches.has(folder)
  }

  mark(raw: RawPath): void {
    this.#dirty.paths.add(raw)
  }

  /** The changes since the last call. Scan only after calling it: later changes count for the next call. */
  take(): Dirty {
    const dirty = this.#dirty
    this.#dirty = { paths: new Set(), renamed: new Set() }
    this.#events = 0
    return dirty
  }

  /** Returns true when all notices of changes made before this call have arrived. */
  async sync(): Promise<boolean> {
    if (this.failed || this.isLost) return false
    const name = `${process.pid}-${Date.now()}-${++this.#syncs}` // A new name, because a former server's file may still be there.
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const timer = setTimeout(() => resolve(false), SYNC_MS)
    this.#awaited = { name, seen: () => resolve(true) }
    try {
      this.#watchSentinels()
      closeSync(openSync(join(this.#sentinels, name), 'wx')) // We create it ourselves, because a pipe with that name would block us.
      const seen = await promise
      unlinkSync(join(this.#sentinels, name))
      this.#syncFailures = seen ? 0 : this.#syncFailures + 1
      if (this.#syncFailures >= MAX_SYNC_FAILURES) this.#fail()
      return seen && !this.isLost
    } catch {
      return false
    } finally {
      clearTimeout(timer)
      this.#awaited = undefined
    }
  }

  #watchSentinels(): void {
    if (this.#sentinelWatch !== undefined) return
    mkdirSync(this.#sentinels, { recursive: true })
    const made = watch(this.#sentinels, { persistent: false }, (_event, name) => {
      if (name === this.#awaited?.name) this.#awaited?.seen()
    })
    made.on('error', () => this.#fail())
    this.#sentinelWatch = made
  }

  #note(folder: RawPath, event: string, name: string | null): void {
    this.#events += 1
    if (this.isLost || name === null) return
    const raw = childOf(folder, name)
    this.#dirty.paths.add(raw)
    // A folder's own notices have its own name. A child may have the same name, so examine both.
    if (event === 'rename' || name === nameOf(folder)) this.#dirty.paths.add(folder)
    if (event === 'rename') this.#dirty.renamed.add(raw)
  }

  #fail(): void {
    this.failed = true
    for (const made of this.#watches.values()) made.close()
    this.#watches.clear()
    this.#sentinelWatch?.close()
    this.#sentinelWatch = undefined
  }
}

/** An overflow means that a full queue was waiting, so at least that many notices arrive; half of that is a safe sign. */
function halfOfQueue(): number {
  try {
    const size = Number(readFileSync('/proc/sys/fs/inotify/max_queued_events', 'utf8'))
    return size > 0 ? Math.floor(size / 2) : DEFAULT_QUEUE / 2
  } catch {
    return DEFAULT_QUEUE / 2
  }
}
