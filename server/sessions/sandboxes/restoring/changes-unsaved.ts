import { AppError, isAppError, messageOf } from '../../../lib/errors.ts'

/** The changes are in the workspace, or may be, and are not saved. Whoever applied them must try again. */
export function changesUnsaved(cause: unknown): AppError {
  const message = `The changes could not be saved yet: ${messageOf(cause)} They are saved as soon as that is possible.`
  return new AppError('unavailable', 'changes_unsaved', message, { cause })
}

/** The container or the checkpoint went away at this moment. The next attempt opens another one. */
const RACES = new Set(['container_gone', 'container_paused', 'container_restarted', 'checkpoint_closed'])

/** Whether the same step can succeed later, without anyone changing anything. */
export function mayPassLater(error: unknown): boolean {
  if (isAppError(error) && RACES.has(error.code)) return true
  if (!isAppError(error) || error.code === 'checkpoint_full' || error.code === 'changes_not_applied') return false
  return error.kind === 'unavailable' || error.kind === 'timeout'
}
