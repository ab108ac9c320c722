import { AppError, messageOf } from '../../lib/errors.ts'

export function checkpointFull(maxBytes: number): AppError {
  return new AppError(
    'unavailable',
    'checkpoint_full',
    `The files of this session exceed the ${Math.floor(maxBytes / 1024 / 1024)} MB that are kept; delete some of them.`
  )
}

export function contentDamaged(): AppError {
  return new AppError(
    'internal',
    'checkpoint_damaged',
    'A stored file of this session is damaged; restore the data folder from a copy, or go on without that file.'
  )
}

/** What the file system throws, as the house's error; passes everything else on. */
export function translateFileError(error: unknown): unknown {
  if (error instanceof AppError || !(error instanceof Error) || !('syscall' in error)) return error
  return new AppError(
    'unavailable',
    'checkpoint_failed',
    `The files of this session could not be stored or read (${messageOf(error)}); check the disk of the data folder.`,
    { cause: error }
  )
}
