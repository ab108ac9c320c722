import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from '../../lib/errors.ts'

const AT_ONCE = 16

/**
 * The disk usage of each session's folder. Other instances write there too, so a figure is measured again when it is older than
 * the caller accepts. Changes by this instance are noticed at once.
 */
export class FolderSizes {
  readonly #dir: string
  readonly #known = new Map<string, { bytes: number; at: number }>()

  constructor(dir: string) {
    this.#dir = dir
  }

  /** Call this when the folder has changed or is gone. */
  forget(name: string): void {
    this.#known.delete(name)
  }

  async all(maxAgeMs: number): Promise<number> {
    const names = await readdir(this.#dir).catch(ignoreMissing)
    const there = new Set(names)
    for (const name of this.#known.keys()) if (!there.has(name)) this.#known.delete(name)
    return this.of(names ?? [], maxAgeMs)
  }

  async of(names: readonly string[], maxAgeMs: number): Promise<number> {
    let sum = 0
    for (let i = 0; i < names.length; i += AT_ONCE) {
      const sizes = await Promise.all(names.slice(i, i + AT_ONCE).map((name) => this.#size(name, maxAgeMs)))
      for (const bytes of sizes) sum += bytes
    }
    return sum
  }

  async #size(name: string, maxAgeMs: number): Promise<number> {
    const known = this.#known.get(name)
    const at = performance.now()
    if (known && at - known.at <= maxAgeMs) return known.bytes
    const bytes = await measure(join(this.#dir, name))
    if (bytes > 0) this.#known.set(name, { bytes, at })
    else this.#known.delete(name)
    return bytes
  }
}

/** An owner links the packs of its predecessor under its own names, so each file must count only once. */
async function measure(folder: string): Promise<number> {
  const sizes = new Map<number, number>()
  for (const name of (await readdir(folder).catch(ignoreMissing)) ?? []) {
    const info = await stat(join(folder, name)).catch(ignoreMissing)
    if (info) sizes.set(info.ino, info.size)
  }
  return [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0)
}

function ignoreMissing(error: unknown): undefined {
  if (!hasCode(error, 'ENOENT', 'ENOTDIR')) throw error
}
