import { AppError } from '../lib/errors.ts'

export function leaseLost(): AppError {
  const message = 'Another instance has taken over this session; open the session again to continue.'
  return new AppError('conflict', 'lease_lost', message)
}

export const SESSION_LOST = 'The server lost its data, including this session. Start a new one.'

/** For a session whose conversation and owner are gone, because the store was emptied. Nobody may get its files any more. */
export function sessionLost(): AppError {
  return new AppError('conflict', 'session_lost', SESSION_LOST)
}

export function storeUnavailable(message: string, cause?: unknown, where?: string): AppError {
  return new AppError('unavailable', 'store_unavailable', message, { cause, ...(where !== undefined && { where }) })
}

export function eventExists(key: string): AppError {
  return new AppError('conflict', 'event_exists', 'Someone else was first.', { details: { key } })
}
