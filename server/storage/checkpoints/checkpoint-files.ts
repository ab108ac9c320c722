/**
 * Stores the files of every session as plain files in a folder that several instances may share. Owns one folder per session,
 * with packs of content and manifests that name it; does not know about paths inside a workspace. Invariant: an owner writes only
 * files of its own epoch, content before the record that names it, and deletes old files only when new ones have replaced them.
 */
import { createHash, randomUUID } from 'node:crypto'
import { readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError, hasCode } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import type { Checkpoint, CheckpointStore } from '../checkpoint-store.ts'
import { leaseLost } from '../store-errors.ts'
import { translateFileError } from './checkpoint-errors.ts'
import { getContent, putContent, removeContent } from './content-files.ts'
import { FileCheckpoint } from './file-checkpoint.ts'
import { FolderSizes } from './folder-sizes.ts'
import { loadCheckpoint, markUsed } from './load-checkpoint.ts'
import { PackSet } from './pack-set.ts'
import { listFiles, SessionFolder } from './session-folder.ts'

export interface CheckpointStoreOptions {
  dir: string
  /** The maximum size of one session's files, including their names. */
  maxSessionBytes: number
  /** The maximum size of the versions of one session's files, apart from the files themselves. */
  maxHistoryBytes?: number
  /** How long versions are kept. */
  historyMs?: number
  logger: Logger
}

const REMOVED = '.removed-'

export function openCheckpointStore(options: CheckpointStoreOptions): CheckpointStore {
  const { dir } = options
  const sizes = new FolderSizes(dir)
  return {
    open: (sessionId, epoch) => openCheckpoint(options, sizes, folderName(sessionId), epoch),
    has: (sessionId) => hasSession(dir, folderName(sessionId)),
    async remove(sessionId, epoch) {
      const files = await listFiles(join(dir, folderName(sessionId)))
      if (files.some((file) => file.epoch > epoch)) throw leaseLost()
      await removeSession(dir, folderName(sessionId))
      sizes.forget(folderName(sessionId))
    },
    bytes: (sessionIds, maxAgeMs = 0) => {
      return sessionIds ? sizes.of([...new Set(sessionIds)].map(folderName), maxAgeMs) : sizes.all(maxAgeMs)
    },
    async putContent(sessionId, bytes) {
      const hash = await putContent(join(dir, folderName(sessionId)), bytes)
      sizes.forget(folderName(sessionId))
      return hash
    },
    getContent: (sessionId, hash) => getContent(join(dir, folderName(sessionId)), hash),
    async removeContent(sessionId, hash) {
      await removeContent(join(dir, folderName(sessionId)), hash)
      sizes.forget(folderName(sessionId))
    },
    prune: (olderThanMs, spared = new Set()) => prune(dir, olderThanMs, new Set([...spared].map(folderName)))
  }
}

async function openCheckpoint(
  options: CheckpointStoreOptions,
  sizes: FolderSizes,
  name: string,
  epoch: number
): Promise<Checkpoint> {
  if (!Number.isSafeInteger(epoch) || epoch < 0) {
    throw new AppError('invalid', 'invalid_epoch', 'An epoch must be a whole number, 0 or more.')
  }
  const { dir, maxSessionBytes: maxBytes, logger } = options
  const folder = new SessionFolder(join(dir, name), epoch)
  const packs = new PackSet(folder)
  try {
    await markUsed(folder)
    const state = await loadCheckpoint(folder, packs, logger)
    const { maxHistoryBytes = maxBytes, historyMs = Number.POSITIVE_INFINITY } = options
    const history = { maxBytes: maxHistoryBytes, keptMs: historyMs }
    return new FileCheckpoint({ folder, packs, state, maxBytes, history, logger, written: () => sizes.forget(name) })
  } catch (error) {
    packs.close()
    await folder.removeAllOwn()
    throw translateFileError(error)
  }
}

async function hasSession(dir: string, name: string): Promise<boolean> {
  return (await listFiles(join(dir, name))).some(({ kind }) => kind === 'manifest')
}

/** Renames the folder first, so that a crash leaves no half session, only leftovers that the next prune removes. */
async function removeSession(dir: string, name: string): Promise<void> {
  const rubbish = join(dir, `${REMOVED}${randomUUID()}`)
  try {
    await rename(join(dir, name), rubbish)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return
    throw error
  }
  await rm(rubbish, { recursive: true, force: true })
}

async function prune(dir: string, olderThanMs: number, spared: ReadonlySet<string>): Promise<number> {
  let removed = 0
  const before = Date.now() - olderThanMs
  for (const name of await readdir(dir).catch(noFolder)) {
    if (name.startsWith(REMOVED)) await rm(join(dir, name), { recursive: true, force: true })
    if (!/^[0-9a-f]{64}$/.test(name) || spared.has(name) || (await lastUsed(join(dir, name))) > before) continue
    await removeSession(dir, name)
    removed++
  }
  return removed
}

/** Opening a session updates the folder's time; a commit updates the manifest's. */
async function lastUsed(folder: string): Promise<number> {
  const manifests = (await listFiles(folder)).filter((file) => file.kind === 'manifest')
  const paths = [folder, ...manifests.map((file) => join(folder, file.name))]
  const times = await Promise.all(paths.map((path) => stat(path).then((info) => info.mtimeMs, noFile)))
  return Math.max(...times)
}

/** The name of a session's folder. */
export function folderName(sessionId: string): string {
  // UTF-16 keeps ids with different lone surrogates apart.
  return createHash('sha256').update(Buffer.from(sessionId, 'utf16le')).digest('hex')
}

function noFolder(error: unknown): string[] {
  if (hasCode(error, 'ENOENT')) return []
  throw error
}

function noFile(error: unknown): number {
  if (hasCode(error, 'ENOENT')) return 0
  throw error
}
