import { isAppError } from '../../lib/errors.ts'

const NOT_OURS = new Set([
  'session_busy',
  'lease_lost',
  'stale_epoch',
  'server_stopped',
  'shutting_down',
  'store_unavailable'
])

/** Somebody else carries the turn on, or nobody can right now: no failure of the turn, and nothing to tell the user. */
export function isOwnershipError(error: unknown): boolean {
  return isAppError(error) && NOT_OURS.has(error.code)
}
