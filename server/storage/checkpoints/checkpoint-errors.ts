import { AppError, messageOf } from '../../lib/errors.ts'
import type { Change, CheckpointState } from './checkpoint-state.ts'

/** The least that the list of a session's files may take: all of it is in memory while the session is open. */
const MIN_ENTRY_LIMIT = 32 * 1024 * 1024
/** The least that files may take with their runs of zeros, which cost nothing to store but time to restore. */
const MIN_FILES_LIMIT = 4 * 1024 * 1024 * 1024

const LIMITED = {
  content: 'The files of this session exceed',
  names: 'There are too many files with long paths in this session: the list of them exceeds',
  holes: 'The files of this session, with their runs of zeros, exceed',
  open: 'The changes that wait for a decision in this session exceed'
}

export function checkpointFull(what: keyof typeof LIMITED, maxBytes: number): AppError {
  const message = `${LIMITED[what]} the limit of ${Math.floor(maxBytes / 1024 / 1024)} MB; delete some of them.`
  return new AppError('unavailable', 'checkpoint_full', message)
}

/** A session over a limit that was lowered may still shrink. */
export function checkSize(
  { sizes: next }: Change,
  { sizes: now }: CheckpointState,
  maxBytes: number,
  maxHistory: number
): void {
  const weight = next.blobBytes + next.entryBytes
  if (weight > maxBytes && weight > now.blobBytes + now.entryBytes) throw checkpointFull('content', maxBytes)
  const maxEntryBytes = Math.max(MIN_ENTRY_LIMIT, maxBytes / 32)
  if (next.entryBytes > maxEntryBytes && next.entryBytes > now.entryBytes) throw checkpointFull('names', maxEntryBytes)
  const maxFileBytes = Math.max(MIN_FILES_LIMIT, 4 * maxBytes)
  if (next.fileBytes > maxFileBytes && next.fileBytes > now.fileBytes) throw checkpointFull('holes', maxFileBytes)
  const open = next.openBytes + next.openSetBytes
  if (open > maxHistory + maxBytes && open > now.openBytes + now.openSetBytes) {
    throw checkpointFull('open', maxHistory + maxBytes)
  }
}

export function contentDamaged(): AppError {
  const message =
    'A stored file of this session is damaged; restore the data folder or the bucket from a copy, or continue without that file.'
  return new AppError('internal', 'checkpoint_damaged', message)
}

export function contentMissing(): AppError {
  return new AppError('not-found', 'checkpoint_content_missing', 'No file with this content is stored.')
}

export function checkpointClosed(): AppError {
  return new AppError('conflict', 'checkpoint_closed', 'The files of this session were closed; open the session again.')
}

/** Translates an error of the file system to an AppError; returns all others unchanged. */
export function translateFileError(error: unknown): unknown {
  if (error instanceof AppError || !(error instanceof Error) || !('syscall' in error)) return error
  const message = `The files of this session could not be stored or read (${messageOf(error)}); check the disk of the data folder.`
  return new AppError('unavailable', 'checkpoint_failed', message, { cause: error })
}
