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
import { errorCode } from '../tools/system-error.ts'
import { fsPath, type RawPath, rawFromText } from './raw-path.ts'

export const OWNER_ALL = 0o700
const SAFE_READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY

/** File system calls on raw paths below the workspace. Synchronous: on a tmpfs they are quicker than a trip to another thread. */
export class RawTree {
  readonly #root: RawPath

  constructor(root: string) {
    this.#root = rawFromText(root)
  }

  path(raw: RawPath): string | Buffer {
    return fsPath(raw === '' ? this.#root : `${this.#root}/${raw}`)
  }

  /** Opens the workspace itself, should a command have closed it: no other could be run to do so. */
  openRoot(): void {
    const stats = this.stat('')
    if (typeof stats !== 'object' || (stats.mode & OWNER_ALL) === OWNER_ALL) return
    try {
      chmodSync(this.path(''), (stats.mode & 0o7777) | OWNER_ALL)
    } catch {
      // Then it is not ours to open, and what can't be read is told.
    }
  }

  /** Undefined when there is nothing; `denied` when a folder above it is closed to us; `too long` for the kernel, though it is there. */
  stat(raw: RawPath): Stats | 'denied' | 'too long' | undefined {
    try {
      return lstatSync(this.path(raw), { throwIfNoEntry: false })
    } catch (error) {
      if (errorCode(error) === 'ENAMETOOLONG') return 'too long'
      return isDenied(error) ? 'denied' : undefined
    }
  }

  /** null when it is not a readable folder. */
  names(raw: RawPath): string[] | null {
    try {
      return readdirSync(this.path(raw), 'latin1')
    } catch {
      return null
    }
  }

  /** null when it is no longer a link. */
  target(raw: RawPath): RawPath | null {
    try {
      return readlinkSync(this.path(raw), 'latin1')
    } catch {
      return null
    }
  }

  /**
   * Opens a regular file to read. `denied`: it is closed to us. `gone`: it is not there, is something else, or a folder above it
   * was swapped for a link while we looked.
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
      return true // Where /proc does not say, O_NOFOLLOW has to do.
    }
  }
}

function isDenied(error: unknown): boolean {
  return ['EACCES', 'EPERM'].includes(errorCode(error) ?? '')
}
