import { AppError } from '../lib/errors.ts'

export function leaseLost(): AppError {
  const message = 'Another instance has taken over this session; open the session again to continue.'
  return new AppError('conflict', 'lease_lost', message)
}

export function storeUnavailable(message: string, cause?: unknown): AppError {
  return new AppError('unavailable', 'store_unavailable', message, { cause })
}

export function eventExists(key: string): AppError {
  return new AppError('conflict', 'event_exists', 'Someone else was first.', { details: { key } })
}
