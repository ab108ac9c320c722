import { isAppError } from '../../lib/errors.ts'

const OWNERSHIP_CODES = new Set([
  'session_busy',
  'lease_lost',
  'stale_epoch',
  'server_stopped',
  'shutting_down',
  'store_unavailable',
  'changes_unsaved',
  'code_paused'
])

/**
 * Another instance continues the turn, or nobody can right now: the turn has not failed, and there is nothing to tell the user.
 */
export function isOwnershipError(error: unknown): boolean {
  return isAppError(error) && OWNERSHIP_CODES.has(error.code)
}
