import { AppError } from '../errors.ts'

export function shuttingDown(): AppError {
  return new AppError('unavailable', 'shutting_down', 'The server is shutting down; try again in a moment.')
}
