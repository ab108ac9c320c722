import type { RawPath } from './raw-path.ts'
import type { WorkspaceIndex } from './workspace-index.ts'

/**
 * Files with several names. Writing through one name is noticed for that name alone, so its other names have to be looked at too.
 * A link that is made, written through and removed between two looks is not noticed; a look with `full` finds it.
 */
export class HardLinks {
  readonly #index: WorkspaceIndex
  readonly #names = new Map<number, Set<RawPath>>()
  readonly #seen = new Map<number, Set<RawPath>>()

  constructor(index: WorkspaceIndex) {
    this.#index = index
  }

  /** A file with more than one name was looked at. */
  add(raw: RawPath, ino: number): void {
    const seen = this.#seen.get(ino)
    if (seen === undefined) this.#seen.set(ino, new Set([raw]))
    else seen.add(raw)
  }

  /** A name is gone; the file may have been written through it before. */
  removed(ino: number): void {
    if (this.#names.has(ino) && !this.#seen.has(ino)) this.#seen.set(ino, new Set())
  }

  /** The other names of the files looked at since the last call. */
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

  /** The number may belong to a new file by now, so names that no longer bear it do not count. */
  #others(ino: number, seen: ReadonlySet<RawPath>): RawPath[] {
    const names = [...(this.#names.get(ino) ?? [])]
    return names.filter((raw) => !seen.has(raw) && this.#index.entries.get(raw)?.ino === ino)
  }

  /** A name that was the file's only one when it was last looked at is in the index, but not here. */
  #findOlderNames(inos: number[]): void {
    if (inos.length === 0) return
    for (const ino of inos) this.#names.set(ino, new Set())
    for (const [raw, entry] of this.#index.entries) if (entry.type !== 'dir') this.#names.get(entry.ino)?.add(raw)
  }
}
