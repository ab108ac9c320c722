import { AppError } from '../lib/errors.ts'

const MAX_SESSION_ID_CHARS = 256

/**
 * The faces check the format of an id. This only rejects ids that a store can't tell apart: two ids with different lone
 * surrogates become the same UTF-8 bytes, and so the same session.
 */
export function validSessionId(sessionId: string): string {
  if (sessionId.length > 0 && sessionId.length <= MAX_SESSION_ID_CHARS && sessionId.isWellFormed()) return sessionId
  const message = `Use a session id of 1 to ${MAX_SESSION_ID_CHARS} characters of valid Unicode.`
  throw new AppError('invalid', 'invalid_session_id', message)
}
