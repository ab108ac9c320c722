import { callOf, type Transcript } from '../../../contract/transcript.ts'
import type { Audit, CallEnd } from '../../audit/audit.ts'
import { messageOf } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import type { StoredEvent } from '../../storage/event-log.ts'
import type { SessionFeed } from './session-feed.ts'

export interface RefusalDeps {
  feed: SessionFeed
  transcript(sessionId: string): Promise<Transcript>
  ownerOf(sessionId: string): Promise<string>
  audit: Audit
  logger: Logger
}

/** Adds calls of a chat that were never made to the audit log, because a person, a rule or the end of the turn prevented them. */
export function recordRefusals(deps: RefusalDeps): void {
  const record = async (sessionId: string, { callId, by }: StoredEvent['data']) => {
    const call = callOf(await deps.transcript(sessionId), String(callId))
    if (!call) return
    const caller = { owner: await deps.ownerOf(sessionId), door: 'chat', session: sessionId } as const
    deps.audit.begin({ caller, server: call.server, tool: call.name, args: call.args })(endOf(by))
  }
  deps.feed.subscribe({
    stored(sessionId, events) {
      for (const { type, data } of events) {
        if (type !== 'tool:approval_resolved' || data.approved !== false) continue
        record(sessionId, data).catch((error) =>
          deps.logger.error({ sessionId }, `A refused call is not in the audit log: ${messageOf(error)}`)
        )
      }
    }
  })
}

function endOf(by: unknown): CallEnd {
  if (by === 'cancel') return { outcome: 'cancelled', code: 'cancelled' }
  return { outcome: 'refused', code: by === 'policy' ? 'denied_by_policy' : 'approval_denied' }
}
