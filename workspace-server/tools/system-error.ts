import { errorCode } from '../../server/lib/errors.ts'
import { ToolError } from './tool.ts'

const SENTENCES: Record<string, (path: string) => string> = {
  ENOENT: (path) => `"${path}" does not exist.`,
  ENOTDIR: (path) => `A part of "${path}" is a file, not a folder.`,
  EISDIR: (path) => `"${path}" is a folder.`,
  EACCES: (path) => `"${path}" can't be accessed: its permissions do not allow it.`,
  EPERM: (path) => `"${path}" can't be changed: its permissions do not allow it.`,
  EROFS: (path) => `"${path}" is on a read-only file system.`,
  ENOSPC: (path) => `The workspace is full, so "${path}" was not written; remove files and try again.`,
  EDQUOT: (path) => `The workspace is full, so "${path}" was not written; remove files and try again.`,
  EFBIG: (path) => `"${path}" would be larger than the limit for a file.`,
  ELOOP: (path) => `"${path}" changed into a symbolic link, or has too many of them.`,
  ENAMETOOLONG: (path) => `A name in "${path.slice(0, 80)}…" is too long.`,
  ENXIO: (path) => `"${path}" is not a regular file.`,
  EMFILE: () => 'Too many files are open; try again when fewer commands run.',
  ENFILE: () => 'Too many files are open; try again when fewer commands run.'
}

/** Turns the error of a file operation into a sentence about the path that the caller named; returns other errors unchanged. */
export function asToolError(error: unknown, path: string): unknown {
  const code = errorCode(error)
  if (code === undefined || error instanceof ToolError) return error
  const sentence = SENTENCES[code]?.(path) ?? `"${path}" could not be used (${code}).`
  return new ToolError(sentence, { cause: error })
}
