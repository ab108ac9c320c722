import { AppError, messageOf } from '../../lib/errors.ts'

export function checkpointFull(maxBytes: number): AppError {
  return new AppError(
    'unavailable',
    'checkpoint_full',
    `The files of this session exceed the limit of ${Math.floor(maxBytes / 1024 / 1024)} MB; delete some of them.`
  )
}

export function contentDamaged(): AppError {
  return new AppError(
    'internal',
    'checkpoint_damaged',
    'A stored file of this session is damaged; restore the data folder from a backup, or continue without that file.'
  )
}

/** Translates an error of the file system to an AppError; returns all others unchanged. */
export function translateFileError(error: unknown): unknown {
  if (error instanceof AppError || !(error instanceof Error) || !('syscall' in error)) return error
  return new AppError(
    'unavailable',
    'checkpoint_failed',
    `The files of this session could not be stored or read (${messageOf(error)}); check the disk of the data folder.`,
    { cause: error }
  )
}
