/**
 * Moves the workspace's files out and in for their owner: what changed, content in pieces, and restoring a copy. It runs one scan
 * or restore at a time; tools continue meanwhile, and the next scan finds what they change.
 */
import { closeSync } from 'node:fs'
import { readRange } from '../files/read-range.ts'
import type {
  ChangesParams,
  ChangesResult,
  FetchParams,
  FetchResult,
  RestoreParams,
  RestoreResult
} from '../protocol.ts'
import { ChangeFeed } from './change-feed.ts'
import { MAX_FETCH_BYTES } from './file-content.ts'
import { pathFromWire, rawFromText } from './raw-path.ts'
import { RawTree } from './raw-tree.ts'
import { Restorer } from './restore.ts'
import { TreeScanner } from './tree-scanner.ts'
import { TreeWatcher } from './tree-watcher.ts'
import { WorkspaceIndex } from './workspace-index.ts'
import { withoutZeros, zeroRuns } from './zero-runs.ts'

export class WorkspaceCheckpoint {
  readonly #tree: RawTree
  readonly #watcher: TreeWatcher
  readonly #feed: ChangeFeed
  readonly #restorer: Restorer
  readonly #scanner: TreeScanner
  /** No tool has run yet, so what is here came from a restore. */
  #isUntouched: boolean
  #last: Promise<unknown> = Promise.resolve()

  constructor(root: string, stateFolder: string) {
    const tree = new RawTree(root)
    const index = new WorkspaceIndex()
    const watcher = new TreeWatcher(tree, stateFolder)
    const scanner = new TreeScanner(tree, index, watcher)
    this.#tree = tree
    this.#scanner = scanner
    this.#isUntouched = tree.names('')?.length === 0
    this.#watcher = watcher
    this.#feed = new ChangeFeed({ tree, index, watcher, scanner })
    this.#restorer = new Restorer(tree, index)
  }

  /**
   * A tool is about to run. From here on the kernel tells what changes, so the first scan after a restore need not look at every
   * file.
   */
  beforeTool(): void {
    if (!this.#isUntouched) return
    this.#isUntouched = false
    if (this.#restorer.isComplete && this.#scanner.watchRestored()) this.#feed.trustIndex()
  }

  changes(params: ChangesParams): Promise<ChangesResult> {
    return this.#inTurn(async () => {
      this.#isUntouched = false
      this.#restorer.settle()
      return this.#feed.changes(params)
    })
  }

  restore(params: RestoreParams): Promise<RestoreResult> {
    return this.#inTurn(async () => this.#restorer.restore(params))
  }

  /** Throws an Error with a sentence if the file can't be read. */
  fetch({ path, offset, length }: FetchParams): FetchResult {
    const raw = pathFromWire(path)
    const opened = raw === null ? 'gone' : this.#tree.open(raw)
    if (opened === 'gone') throw new Error(`There is no such file: ${JSON.stringify(path)}.`)
    if (opened === 'denied') throw new Error(`The permissions of ${JSON.stringify(path)} do not allow reading it.`)
    try {
      const data = readRange(opened.fd, offset, Math.min(length, MAX_FETCH_BYTES))
      const eof = offset + data.length >= opened.stats.size
      const runs = zeroRuns(data)
      const holes = runs.flatMap(({ at, length, isZero }) => (isZero ? [{ at, length }] : []))
      return { data: Buffer.from(withoutZeros(data, runs)).toString('base64'), holes, eof }
    } finally {
      closeSync(opened.fd)
    }
  }

  /** A tool wrote this file. Noted in case the kernel's notices don't arrive in time. */
  written(relativePath: string): void {
    this.#watcher.mark(rawFromText(relativePath))
  }

  #inTurn<T>(job: () => Promise<T>): Promise<T> {
    const mine = this.#last.then(job)
    this.#last = mine.catch(() => {})
    return mine
  }
}
