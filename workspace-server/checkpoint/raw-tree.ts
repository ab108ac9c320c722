import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  type Stats
} from 'node:fs'
import { hasCode } from '../../server/lib/errors.ts'
import { fsPath, type RawPath, rawFromText } from './raw-path.ts'

export const OWNER_ALL = 0o700
const SAFE_READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY

/**
 * File system calls on raw paths below the workspace. They are synchronous: on a tmpfs that is faster than using another thread.
 */
export class RawTree {
  readonly #root: RawPath

  constructor(root: string) {
    this.#root = rawFromText(root)
  }

  path(raw: RawPath): string | Buffer {
    return fsPath(raw === '' ? this.#root : `${this.#root}/${raw}`)
  }

  /** Restores our access to the workspace itself, in case a command removed it: no other command could run to do so. */
  openRoot(): void {
    const stats = this.stat('')
    if (typeof stats !== 'object' || (stats.mode & OWNER_ALL) === OWNER_ALL) return
    try {
      chmodSync(this.path(''), (stats.mode & 0o7777) | OWNER_ALL)
    } catch {
      // The workspace is not ours to open; the scan reports what can't be read.
    }
  }

  /**
   * Returns undefined if there is nothing, `denied` if we can't enter a folder above it, `too long` if it exists but its path is
   * too long for the kernel.
   */
  stat(raw: RawPath): Stats | 'denied' | 'too long' | undefined {
    try {
      return lstatSync(this.path(raw), { throwIfNoEntry: false })
    } catch (error) {
      if (hasCode(error, 'ENAMETOOLONG')) return 'too long'
      return isDenied(error) ? 'denied' : undefined
    }
  }

  /** Returns null if it is not a readable folder. */
  names(raw: RawPath): string[] | null {
    try {
      return readdirSync(this.path(raw), 'latin1')
    } catch {
      return null
    }
  }

  /** Returns null if it is no longer a link. */
  target(raw: RawPath): RawPath | null {
    try {
      return readlinkSync(this.path(raw), 'latin1')
    } catch {
      return null
    }
  }

  /**
   * Opens a regular file for reading. Returns `denied` if we may not read it, and `gone` if it is missing, is something else, or
   * a folder above it was swapped for a link meanwhile.
   */
  open(raw: RawPath): { fd: number; stats: Stats } | 'denied' | 'gone' {
    let fd: number
    try {
      fd = openSync(this.path(raw), SAFE_READ)
    } catch (error) {
      return isDenied(error) ? 'denied' : 'gone'
    }
    const stats = fstatSync(fd)
    if (stats.isFile() && this.#isAt(fd, raw)) return { fd, stats }
    closeSync(fd)
    return 'gone'
  }

  #isAt(fd: number, raw: RawPath): boolean {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`, 'latin1') === `${this.#root}/${raw}`
    } catch {
      return true // Without /proc, O_NOFOLLOW has to be enough.
    }
  }
}

const isDenied = (error: unknown) => hasCode(error, 'EACCES', 'EPERM')
