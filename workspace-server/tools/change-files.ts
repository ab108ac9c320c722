/**
 * The changes that a person makes to the workspace directly. Nothing is ever replaced by accident: a new or moved file needs a free
 * place, and an edit needs the content that the person has seen.
 */
import { linkSync, lstatSync, renameSync, rmSync, unlinkSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { hasCode } from '../../server/lib/errors.ts'
import { pathTarget, TargetChangedError } from '../files/path-target.ts'
import type { WorkspaceRoot } from '../files/workspace-root.ts'
import type { FileChange, FileChangeResult } from '../protocol.ts'
import { asToolError } from './system-error.ts'
import { ToolError } from './tool.ts'
import { ToolArguments } from './tool-arguments.ts'
import { writeFile } from './write-file.ts'

type Problem = NonNullable<FileChangeResult['problem']>

class Refusal extends Error {
  readonly code: Problem['code']

  constructor(code: Problem['code'], message: string) {
    super(message)
    this.code = code
  }
}

/** `onChanged` gets the real path of everything that was written, created or removed. */
export function changeFiles(
  root: WorkspaceRoot,
  change: FileChange,
  onChanged: (real: string) => void
): FileChangeResult {
  try {
    if (change.kind === 'write') write(root, change, onChanged)
    else if (change.kind === 'move') move(root, change, onChanged)
    else if (change.kind === 'folder') makeFolder(root, change.path, onChanged)
    else remove(root, change.path, onChanged)
    return {}
  } catch (error) {
    return { problem: problemOf(error, change.path) }
  }
}

function problemOf(error: unknown, path: string): Problem {
  if (error instanceof TargetChangedError) return { code: 'file_changed', message: changed(path) }
  if (error instanceof Refusal) return { code: error.code, message: error.message }
  const known = asToolError(error, path)
  if (known instanceof ToolError) return { code: 'file_refused', message: known.message.slice(0, 500) }
  throw error
}

interface Place {
  /** The folder of the name, with links resolved. If the name itself is a link, the link is meant. */
  folder: string
  name: string
}

function placeOf(root: WorkspaceRoot, named: string): Place {
  const path = new ToolArguments({ path: named }, ['path']).path('path')
  const wanted = resolve(root.path, path)
  if (wanted === root.path) throw new ToolError('This is the whole workspace. Name a file or a folder in it.')
  return { folder: root.resolve(dirname(wanted)), name: basename(wanted) }
}

function makeFolder(root: WorkspaceRoot, path: string, onChanged: (real: string) => void): void {
  const { folder, name } = placeOf(root, path)
  const real = join(folder, name)
  if (lstatSync(real, { throwIfNoEntry: false })) throw taken(path)
  root.inFolder(real, true, () => {})
  onChanged(real)
}

function remove(root: WorkspaceRoot, path: string, onChanged: (real: string) => void): void {
  const { folder, name } = placeOf(root, path)
  root.inFolder(folder, false, (at) => rmSync(join(at, name), { recursive: true }))
  onChanged(join(folder, name))
}

function move(
  root: WorkspaceRoot,
  { path, to }: Extract<FileChange, { kind: 'move' }>,
  onChanged: (real: string) => void
): void {
  const from = placeOf(root, path)
  const target = placeOf(root, to)
  const [old, real] = [join(from.folder, from.name), join(target.folder, target.name)]
  const isFile = lstatSync(old).isFile()
  if (`${real}/`.startsWith(`${old}/`)) throw new ToolError(`"${path}" can't be moved into itself.`)
  if (lstatSync(real, { throwIfNoEntry: false })) throw taken(to)
  root.inFolder(from.folder, false, (fromFolder) =>
    root.inFolder(target.folder, true, (toFolder) => {
      const [before, after] = [join(fromFolder, from.name), join(toFolder, target.name)]
      if (!isFile) return renameSync(before, after)
      placeFile(before, after, to)
      unlinkSync(before)
    })
  )
  for (const place of [old, real]) onChanged(place)
}

/** Unlike a rename, a link never replaces anything. */
function placeFile(before: string, after: string, to: string): void {
  try {
    linkSync(before, after)
  } catch (error) {
    throw hasCode(error, 'EEXIST') ? taken(to) : error
  }
}

function write(
  root: WorkspaceRoot,
  { path, data, expected }: Extract<FileChange, { kind: 'write' }>,
  onChanged: (real: string) => void
): void {
  const target = pathTarget(root, path)
  const args = { path, content: data, encoding: 'base64' }
  if (expected === null) {
    if (target.is === 'file' || target.is === 'folder' || target.is === 'other') throw taken(path)
  } else if (target.is !== 'file') throw new Refusal('file_changed', changed(path))
  writeFile(root, onChanged, args, { path: target.path, is: target.is, hash: expected ?? undefined })
}

function taken(path: string): Refusal {
  return new Refusal('file_exists', `There is already something at "${path.slice(0, 200)}".`)
}

function changed(path: string): string {
  return `"${path.slice(0, 200)}" has changed since it was opened.`
}
