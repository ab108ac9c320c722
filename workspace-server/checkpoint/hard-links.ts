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

  /** The other names of the files looked at since the last call. */
  siblings(): RawPath[] {
    if (this.#seen.size === 0) return []
    const unknown = [...this.#seen.keys()].filter((ino) => !this.#names.has(ino))
    if (unknown.length > 0) this.#findOlderNames(new Set(unknown))
    const siblings: RawPath[] = []
    for (const [ino, seen] of this.#seen) {
      const names = this.#names.get(ino) ?? new Set()
      for (const raw of names) {
        if (this.#index.entries.get(raw)?.ino !== ino) names.delete(raw)
        else if (!seen.has(raw)) siblings.push(raw)
      }
      for (const raw of seen) names.add(raw)
      this.#names.set(ino, names)
    }
    this.#seen.clear()
    return siblings
  }

  /** A name that was the file's only one when it was last looked at is in the index, but not here. */
  #findOlderNames(inos: ReadonlySet<number>): void {
    for (const ino of inos) this.#names.set(ino, new Set())
    for (const [raw, entry] of this.#index.entries) if (entry.type === 'file') this.#names.get(entry.ino)?.add(raw)
  }
}
