import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  ftruncateSync,
  futimesSync,
  lutimesSync,
  mkdirSync,
  openSync,
  rmdirSync,
  type Stats,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeSync
} from 'node:fs'
import { hasCode } from '../../server/lib/errors.ts'
import type { RestoredEntry } from '../protocol.ts'
import { fromWire, fsPath, parentOf, type RawPath } from './raw-path.ts'
import { OWNER_ALL, type RawTree } from './raw-tree.ts'

const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK } = constants

type FileEntry = Extract<RestoredEntry, { type: 'file' }>

/**
 * Makes sure that the folder and all its parents are real folders: a link among them would redirect the write. Creates missing
 * folders. Opens up folders that we can't write to, and adds them to `touched` so that their modes are corrected later.
 */
export function prepareFolder(tree: RawTree, folder: RawPath, touched: Set<RawPath>): void {
  if (folder === '' || touched.has(folder)) return
  prepareFolder(tree, parentOf(folder), touched)
  const stats = tree.stat(folder)
  if (stats === undefined) mkdirSync(tree.path(folder))
  else if (typeof stats === 'string' || !stats.isDirectory()) throw new Error('A part of its path is not a folder.')
  else if ((stats.mode & OWNER_ALL) !== OWNER_ALL) chmodSync(tree.path(folder), (stats.mode & 0o7777) | OWNER_ALL)
  touched.add(folder)
}

/** Removes a file, link or empty folder. Does nothing if there is nothing. */
export function removeEntry(tree: RawTree, raw: RawPath, touched: Set<RawPath>): void {
  if (tree.stat(raw) === undefined) return
  prepareFolder(tree, parentOf(raw), touched)
  clear(tree, raw)
}

export function restoreFolder(tree: RawTree, raw: RawPath): void {
  const stats = tree.stat(raw)
  if (typeof stats === 'object' && stats.isDirectory()) return
  if (stats !== undefined) unlinkSync(tree.path(raw))
  mkdirSync(tree.path(raw))
}

/** Children change a folder's times, so call this when all of them are written. */
export function finishFolder(tree: RawTree, raw: RawPath, mode: number, mtimeMs: number): void {
  const stats = tree.stat(raw)
  if (typeof stats !== 'object' || !stats.isDirectory()) return
  chmodSync(tree.path(raw), mode & 0o7777)
  utimesSync(tree.path(raw), mtimeMs / 1000, mtimeMs / 1000)
}

export function restoreLink(tree: RawTree, raw: RawPath, target: string, mtimeMs: number): void {
  clear(tree, raw)
  symlinkSync(fsPath(fromWire(target)), tree.path(raw))
  lutimesSync(tree.path(raw), mtimeMs / 1000, mtimeMs / 1000)
}

/** Writes a whole file, or a part at `offset`. The first part creates the file in its full size, so that zeros take no space. */
export function restoreFile(tree: RawTree, raw: RawPath, entry: FileEntry, data: Uint8Array): Stats {
  const offset = entry.offset ?? 0
  const isWhole = entry.offset === undefined
  if (isWhole && data.length !== entry.size) throw new Error('Its content does not have the size that it says.')
  if (offset + data.length > entry.size) throw new Error('A part of it goes beyond its size.')
  const isNew = offset === 0
  const fd = isNew ? createFile(tree, raw) : openPart(tree, raw)
  try {
    if (!isNew && !fstatSync(fd).isFile()) throw new Error('It is not a regular file.')
    const isEmpty = isZero(data)
    // A whole file gets its size from its content.
    const isSized = isNew && data.length === entry.size && !isEmpty
    if (!isSized && fstatSync(fd).size !== entry.size) ftruncateSync(fd, entry.size)
    if (!isEmpty) for (let at = 0; at < data.length; ) at += writeSync(fd, data, at, data.length - at, offset + at)
    fchmodSync(fd, entry.mode & 0o7777)
    futimesSync(fd, entry.mtimeMs / 1000, entry.mtimeMs / 1000)
    return fstatSync(fd)
  } finally {
    closeSync(fd)
  }
}

function createFile(tree: RawTree, raw: RawPath): number {
  const create = () => openSync(tree.path(raw), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
  try {
    return create()
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
    clear(tree, raw)
    return create()
  }
}

function openPart(tree: RawTree, raw: RawPath): number {
  const flags = O_WRONLY | O_NOFOLLOW | O_NONBLOCK
  try {
    return openSync(tree.path(raw), flags)
  } catch (error) {
    const stats = tree.stat(raw)
    if (!hasCode(error, 'EACCES') || typeof stats !== 'object' || !stats.isFile()) throw error
    chmodSync(tree.path(raw), 0o600) // The part before it made the file read-only.
    return openSync(tree.path(raw), flags)
  }
}

/** Removes a file, link or empty folder that is in the way. */
function clear(tree: RawTree, raw: RawPath): void {
  const stats = tree.stat(raw)
  if (typeof stats !== 'object') return
  if (stats.isDirectory()) rmdirSync(tree.path(raw))
  else unlinkSync(tree.path(raw))
}

function isZero(data: Uint8Array): boolean {
  if (data.length === 0 || data[0] !== 0) return data.length === 0
  return Buffer.alloc(data.length).equals(data)
}
