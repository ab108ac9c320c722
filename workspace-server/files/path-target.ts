import { createHash } from 'node:crypto'
import { closeSync, constants, lstatSync } from 'node:fs'
import { resolve } from 'node:path'
import { type ExpectedTarget, MAX_HASHED_BYTES, type PathTarget } from '../protocol.ts'
import { asToolError } from '../tools/system-error.ts'
import { ToolError } from '../tools/tool.ts'
import { ToolArguments } from '../tools/tool-arguments.ts'
import { readRange } from './read-range.ts'
import type { WorkspaceRoot } from './workspace-root.ts'

/** The path no longer leads to what a person approved: nothing was done, and they must be asked again. */
export class TargetChangedError extends Error {
  readonly target: PathTarget

  constructor(target: PathTarget) {
    super('The path no longer leads to what was approved.')
    this.target = target
  }
}

/** Never throws for a path of the model: an unusable path gives a target with a problem. */
export function pathTarget(root: WorkspaceRoot, named: string): PathTarget {
  try {
    const real = root.resolve(new ToolArguments({ path: named }, ['path']).path('path'))
    const throughLink = real === resolve(root.path, named) ? {} : { throughLink: true as const }
    return { path: real, ...kindOf(root, real), ...throughLink }
  } catch (error) {
    const problem = asToolError(error, named)
    if (!(problem instanceof ToolError)) throw error
    return { path: null, is: 'unusable', problem: problem.message.slice(0, 500) }
  }
}

function kindOf(root: WorkspaceRoot, real: string): Pick<PathTarget, 'is' | 'bytes' | 'hash'> {
  const stats = lstatSync(real, { throwIfNoEntry: false })
  if (!stats) return { is: 'new' }
  if (!stats.isFile()) return { is: stats.isDirectory() ? 'folder' : 'other' }
  const hash = contentHash(root, real)
  return { is: 'file', bytes: stats.size, ...(hash !== undefined && { hash }) }
}

/** undefined if there is no such file, or if it is too large or can't be read. */
export function contentHash(root: WorkspaceRoot, place: string): string | undefined {
  try {
    const { fd, stats } = root.open(place, constants.O_RDONLY)
    try {
      if (!stats.isFile()) return undefined
      const content = readRange(fd, 0, Math.min(stats.size, MAX_HASHED_BYTES) + 1)
      return content.length > MAX_HASHED_BYTES ? undefined : createHash('sha256').update(content).digest('hex')
    } finally {
      closeSync(fd)
    }
  } catch {
    return undefined
  }
}

/**
 * The real path of what the caller named, as `root.resolve` returns it. Throws TargetChangedError if it is not the expected one.
 * Without an expectation (nobody was shown a target), every path is accepted. The content is not compared here, but right before it
 * is replaced.
 */
export function resolveExpected(root: WorkspaceRoot, named: string, expected: ExpectedTarget | undefined): string {
  if (!expected) return root.resolve(named)
  const target = pathTarget(root, named)
  if (target.path !== expected.path || (expected.is !== undefined && target.is !== expected.is))
    throw new TargetChangedError(target)
  // This throws what is wrong with the path; it was also wrong when it was approved.
  return target.path ?? root.resolve(named)
}
