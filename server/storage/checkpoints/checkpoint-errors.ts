import { AppError, messageOf } from '../../lib/errors.ts'

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

export function contentDamaged(): AppError {
  const message =
    'A stored file of this session is damaged; restore the data folder from a backup, or continue without that file.'
  return new AppError('internal', 'checkpoint_damaged', message)
}

/** Translates an error of the file system to an AppError; returns all others unchanged. */
export function translateFileError(error: unknown): unknown {
  if (error instanceof AppError || !(error instanceof Error) || !('syscall' in error)) return error
  const message = `The files of this session could not be stored or read (${messageOf(error)}); check the disk of the data folder.`
  return new AppError('unavailable', 'checkpoint_failed', message, { cause: error })
}
