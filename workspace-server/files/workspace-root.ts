/**
 * Keeps paths inside the workspace, through `..` and symbolic links too. A command that runs at the same time under the same
 * user can swap folders under our feet; so what was opened is looked at once more, by where its descriptor really points.
 */
import { closeSync, constants, fstatSync, lstatSync, openSync, readlinkSync, realpathSync, type Stats } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { errorCode } from '../tools/system-error.ts'
import { ToolError } from '../tools/tool.ts'

const SAFE_FLAGS = constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY

export class WorkspaceRoot {
  /** Without symbolic links. */
  readonly path: string
  readonly #device: number

  constructor(path: string) {
    this.path = realpathSync(path)
    this.#device = lstatSync(this.path).dev
  }

  /**
   * The real, absolute path of what the caller named: links resolved, parts that do not exist yet appended as they are.
   * Throws ToolError when it is outside.
   */
  resolve(named: string): string {
    const wanted = resolve(this.path, named)
    if (!this.#holds(wanted)) throw outside(named)
    const missing: string[] = []
    for (let at = wanted; ; at = dirname(at)) {
      const real = realOrNull(at)
      if (real === null) {
        if (isLink(at)) throw new ToolError(`"${named}" leads through a symbolic link whose target does not exist.`)
        missing.unshift(at.slice(dirname(at).length).replace(/^\//, ''))
        continue
      }
      const found = join(real, ...missing)
      if (!this.#holds(real)) throw outside(named)
      return found
    }
  }

  /** The path as the model should see it: relative to the workspace, `.` for the workspace itself. */
  relative(real: string): string {
    return real === this.path ? '.' : real.slice(this.path.length + 1)
  }

  /** Opens a path that `resolve` gave, and refuses what has moved out of the workspace meanwhile. */
  open(real: string, flags: number, mode = 0o644): { fd: number; stats: Stats } {
    const fd = openSync(real, flags | SAFE_FLAGS, mode)
    try {
      const stats = fstatSync(fd)
      if (!this.#isInside(fd, stats)) throw outside(this.relative(real))
      return { fd, stats }
    } catch (error) {
      closeSync(fd)
      throw error
    }
  }

  #holds(path: string): boolean {
    return path === this.path || path.startsWith(`${this.path}/`)
  }

  /** Where /proc does not say, being on the workspace's own file system has to do. */
  #isInside(fd: number, stats: Stats): boolean {
    try {
      return this.#holds(readlinkSync(`/proc/self/fd/${fd}`))
    } catch {
      return stats.dev === this.#device
    }
  }
}

function outside(named: string): ToolError {
  return new ToolError(`"${named.slice(0, 200)}" is outside the workspace; only paths inside it can be used.`)
}

function realOrNull(path: string): string | null {
  try {
    return realpathSync(path)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null
    throw error
  }
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false
}
