import type { RawPath } from './raw-path.ts'
import type { WorkspaceIndex } from './workspace-index.ts'

/**
 * Files with several names. A write through one name is reported for that name only, so the other names must be examined too. A
 * link that is created, written through and removed between two scans is not noticed; a scan with `full` finds the change.
 */
export class HardLinks {
  readonly #index: WorkspaceIndex
  readonly #names = new Map<number, Set<RawPath>>()
  readonly #seen = new Map<number, Set<RawPath>>()

  constructor(index: WorkspaceIndex) {
    this.#index = index
  }

  /** Call this when a file with more than one name was examined. */
  add(raw: RawPath, ino: number): void {
    const seen = this.#seen.get(ino)
    if (seen === undefined) this.#seen.set(ino, new Set([raw]))
    else seen.add(raw)
  }

  /** Call this when a name is gone; the file may have been written through it before. */
  removed(ino: number): void {
    if (this.#names.has(ino) && !this.#seen.has(ino)) this.#seen.set(ino, new Set())
  }

  /** The other names of the files examined since the last call. */
  siblings(): RawPath[] {
    if (this.#seen.size === 0) return []
    const lone = [...this.#seen].filter(([ino, seen]) => this.#others(ino, seen).length === 0)
    this.#findOlderNames(lone.map(([ino]) => ino))
    const siblings: RawPath[] = []
    for (const [ino, seen] of this.#seen) {
      const others = this.#others(ino, seen)
      siblings.push(...others)
      this.#names.set(ino, new Set([...others, ...seen]))
    }
    this.#seen.clear()
    return siblings
  }

  /** The inode number may belong to a new file by now, so names that no longer have it do not count. */
  #others(ino: number, seen: ReadonlySet<RawPath>): RawPath[] {
    const names = [...(this.#names.get(ino) ?? [])]
    return names.filter((raw) => !seen.has(raw) && this.#index.entries.get(raw)?.ino === ino)
  }

  /** A name that was the file's only one at the last examination is in the index, but not here. */
  #findOlderNames(inos: number[]): void {
    if (inos.length === 0) return
    for (const ino of inos) this.#names.set(ino, new Set())
    for (const [raw, entry] of this.#index.entries) if (entry.type !== 'dir') this.#names.get(entry.ino)?.add(raw)
  }
}
