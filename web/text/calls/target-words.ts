import type { PathTarget } from '../../../contract/path-target.ts'
import { bytes } from '../format.ts'

/** A sentence about where a call's path leads. The path is a separate field, because it is hostile. */
export interface TargetWords {
  before: string
  path: string
  after: string
  /** The call will fail, replaces something, or leads elsewhere than the path says. */
  isWarning: boolean
}

type Named = { name: string; args: Record<string, unknown> }

export function targetWords({ name, args }: Named, target: PathTarget): TargetWords {
  const { path } = target
  if (path === null) return { before: 'This will fail: ', path: target.problem ?? '', after: '', isWarning: true }
  if (target.is === 'unchecked') return unchecked(name, path)
  const words = name === 'write_file' ? writeWords(args.append === true, target) : readWords(name, target)
  const link = target.throughLink ? ' The path leads there through a symbolic link.' : ''
  return { ...words, path, after: words.after + link, isWarning: words.isWarning || link !== '' }
}

type Around = Omit<TargetWords, 'path'>

function writeWords(isAppend: boolean, target: PathTarget): Around {
  const size = bytes(target.bytes ?? 0)
  if (target.is === 'new') return { before: 'New file ', after: '.', isWarning: false }
  if (target.is === 'folder') return { before: 'This will fail: ', after: ' is a folder.', isWarning: true }
  if (target.is !== 'file') return { before: 'This will fail: ', after: ' is not a regular file.', isWarning: true }
  if (isAppend) return { before: 'Adds to ', after: `, which has ${size} now.`, isWarning: false }
  return { before: 'Overwrites ', after: `, which has ${size} now.`, isWarning: true }
}

function readWords(name: string, { is, bytes: size = 0 }: PathTarget): Around {
  if (is === 'new') return { before: 'There is nothing at ', after: ' now.', isWarning: true }
  if (name === 'execute_command') return { before: 'Runs in ', after: '.', isWarning: false }
  if (name === 'list_files') return { before: 'Lists ', after: '.', isWarning: false }
  return is === 'file'
    ? { before: 'Reads ', after: `, which has ${bytes(size)}.`, isWarning: false }
    : { before: 'This will fail: ', after: ' is not a file.', isWarning: true }
}

function unchecked(name: string, path: string): TargetWords {
  const after =
    name === 'write_file'
      ? ' could not be checked. If something is there, you are asked again before it is replaced.'
      : ' could not be checked. If it leads elsewhere, you are asked again.'
  return { before: '', path, after, isWarning: true }
}
