/**
 * Keeps paths inside the workspace, even through `..` and symbolic links. A concurrent command of the same user can swap folders,
 * so everything that was opened is checked again, by where its descriptor really points.
 */
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readlinkSync,
  realpathSync,
  type Stats
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { hasCode } from '../../server/lib/errors.ts'
import { ToolError } from '../tools/tool.ts'

/** Linux only, and missing in Node's constants: a descriptor that only refers to a place and needs no right to read it. */
const O_PATH = 0o10000000
const FOLDER_FLAGS = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW
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
   * The real, absolute path of what the caller named: links are resolved, and missing parts are appended as they are. Throws
   * ToolError if it is outside the workspace.
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

  /** Opens a path from `resolve`, and refuses one that has moved out of the workspace meanwhile. */
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

  /**
   * Runs a job in a folder from `resolve`; creates missing folders if `mayCreate`. The path that `job` gets stays this folder,
   * whatever a command renames meanwhile: every step is opened from the one before, and none may be a link. Throws ELOOP or
   * ENOTDIR if one is.
   */
  inFolder<T>(real: string, mayCreate: boolean, job: (folder: string) => T): T {
    const names = real === this.path ? [] : this.relative(real).split('/')
    let fd = openSync(this.path, FOLDER_FLAGS)
    try {
      for (const name of names) {
        const next = openStep(`/proc/self/fd/${fd}/${name}`, mayCreate)
        closeSync(fd)
        fd = next
      }
      return job(`/proc/self/fd/${fd}`)
    } finally {
      closeSync(fd)
    }
  }

  /** Whether an open file is the one at this path, or was until it was removed. */
  isAt(fd: number, real: string): boolean {
    try {
      const place = readlinkSync(`/proc/self/fd/${fd}`)
      return place === real || place === `${real} (deleted)`
    } catch {
      return true
    }
  }

  #holds(path: string): boolean {
    return path === this.path || path.startsWith(`${this.path}/`)
  }

  /** Without /proc, being on the workspace's own file system has to be enough. */
  #isInside(fd: number, stats: Stats): boolean {
    try {
      return this.#holds(readlinkSync(`/proc/self/fd/${fd}`))
    } catch {
      return stats.dev === this.#device
    }
  }
}

function openStep(folder: string, mayCreate: boolean): number {
  try {
    return openSync(folder, FOLDER_FLAGS)
  } catch (error) {
    if (!mayCreate || !hasCode(error, 'ENOENT')) throw error
  }
  mkdirSync(folder)
  return openSync(folder, FOLDER_FLAGS)
}

function outside(named: string): ToolError {
  return new ToolError(`"${named.slice(0, 200)}" is outside the workspace; only paths inside it can be used.`)
}

function realOrNull(path: string): string | null {
  try {
    return realpathSync(path)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return null
    throw error
  }
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false
}
