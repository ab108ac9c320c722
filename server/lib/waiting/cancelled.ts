import { AppError } from '../errors.ts'

/** The error for work that was aborted: the reason of the signal if it is one of our errors. */
export function cancelled(reason: unknown, message: string): AppError {
  return reason instanceof AppError ? reason : new AppError('cancelled', 'cancelled', message)
}
