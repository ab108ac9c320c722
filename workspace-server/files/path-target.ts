import { lstatSync, type Stats } from 'node:fs'
import { resolve } from 'node:path'
import type { ExpectedTarget, PathTarget } from '../protocol.ts'
import { asToolError } from '../tools/system-error.ts'
import { ToolError } from '../tools/tool.ts'
import { ToolArguments } from '../tools/tool-arguments.ts'
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
    const stats = lstatSync(real, { throwIfNoEntry: false })
    return { path: real, ...kindOf(stats), ...throughLink }
  } catch (error) {
    const problem = asToolError(error, named)
    if (!(problem instanceof ToolError)) throw error
    return { path: null, is: 'unusable', problem: problem.message.slice(0, 500) }
  }
}

function kindOf(stats: Stats | undefined): Pick<PathTarget, 'is' | 'bytes'> {
  if (!stats) return { is: 'new' }
  if (stats.isFile()) return { is: 'file', bytes: stats.size }
  return { is: stats.isDirectory() ? 'folder' : 'other' }
}

/**
 * The real path of what the caller named, as `root.resolve` returns it. Throws TargetChangedError if it is not the expected one.
 * Without an expectation (nobody was shown a target), every path is accepted.
 */
export function resolveExpected(root: WorkspaceRoot, named: string, expected: ExpectedTarget | undefined): string {
  if (!expected) return root.resolve(named)
  const target = pathTarget(root, named)
  if (target.path !== expected.path || (expected.is !== undefined && target.is !== expected.is))
    throw new TargetChangedError(target)
  // This throws what is wrong with the path; it was also wrong when it was approved.
  return target.path ?? root.resolve(named)
}
