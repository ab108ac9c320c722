/** Decides what happens next if changes that a person has accepted could not be put into the workspace. */
import { isAppError, messageOf } from '../../lib/errors.ts'
import { isOwnershipError } from '../sandboxes/ownership-error.ts'
import { changesUnsaved, mayPassLater } from '../sandboxes/restoring/changes-unsaved.ts'
import { appendEvents } from '../sandboxes/session-events.ts'
import type { ChatDeps } from './chat-options.ts'
import { noticeOf } from './turn-events.ts'

export type ApplyDeps = Pick<ChatDeps, 'events' | 'publish' | 'logger'>

interface Applied {
  sessionId: string
  epoch: number
  /** The call or the review. */
  id: string
}

/** Errors after which the workspace certainly has none of the changes. */
const REFUSED = new Set(['changes_not_applied', 'checkpoint_full', 'changes_conflict', 'stale'])

/**
 * Throws if the same step can succeed later: the decision stays, and the turn driver tries again. That also holds for a sandbox that can't be
 * opened, because an earlier attempt may have written to it. Otherwise returns whether nothing of the changes is in the workspace.
 */
export async function failedApply(deps: ApplyDeps, applied: Applied, error: unknown): Promise<boolean> {
  const isUnsaved = isAppError(error, 'changes_unsaved')
  if (isOwnershipError(error) && !isUnsaved) throw error
  const { sessionId, id } = applied
  const cause = isUnsaved ? error.cause : error
  const fields = { sessionId, id, code: isAppError(cause) ? cause.code : 'internal', err: cause }
  if (isUnsaved || mayPassLater(error)) {
    const why = isUnsaved ? error : changesUnsaved(error)
    if (await isFirstNotice(deps, applied, why.message))
      deps.logger.warn(fields, `Accepted changes wait to be saved: ${messageOf(cause)}`)
    throw why
  }
  deps.logger.warn(fields, `Accepted changes are not in the workspace: ${messageOf(error)}`)
  return isAppError(error) && REFUSED.has(error.code)
}

/** The person hears once per decision that it waits. */
async function isFirstNotice(deps: ApplyDeps, { sessionId, epoch, id }: Applied, message: string): Promise<boolean> {
  const notice = { ...noticeOf('changes_unsaved', message), key: `unsaved:${id}` }
  try {
    await appendEvents(deps, sessionId, [notice], epoch)
    return true
  } catch (error) {
    return !isAppError(error, 'event_exists')
  }
}
