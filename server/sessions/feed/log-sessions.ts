/**
 * Logs a session's life, one line for each thing that an operator asks about: opened, approved by whom, ended and why. It logs
 * names and codes only, never what people and models write.
 */

import type { CallEnd } from '../../audit/audit.ts'
import { BoundedMap } from '../../lib/bounded-map.ts'
import type { Logger } from '../../lib/logger.ts'
import type { StoredEvent } from '../../storage/event-log.ts'
import type { SessionFeed } from './session-feed.ts'

type Line = [fields: Record<string, unknown>, sentence: string]

const LINES: Record<string, (data: StoredEvent['data'], seq: number) => Line> = {
  // The first event of a session selects its first model.
  'model:selected': ({ model }, seq) => [{ model }, seq === 1 ? 'Session opened.' : 'Model selected.'],
  'user:message': ({ turnId }) => [{ turnId }, 'Turn started.'],
  'turn:reopened': ({ turnId, of }) => [{ turnId, of }, 'Turn retried.'],
  'tool:approval_required': ({ turnId, callId, server, name, ahead }) => [
    { turnId, callId, server, tool: name, ...(ahead === undefined ? {} : { mode: ahead }) },
    ahead === undefined ? 'Tool call waits for approval.' : 'Tool call runs in a fork.'
  ],
  'tool:previewed': ({ callId }) => [{ callId }, 'Tool call ran in a fork and waits for a decision.'],
  'tool:preview_refused': ({ callId, code }) => [{ callId, code }, 'Tool call got no fork and waits for approval.'],
  'mode:selected': ({ mode }) => [{ mode }, 'Approval mode selected.'],
  'review:opened': ({ reviewId, turnId }) => [{ reviewId, turnId }, 'Review opened.'],
  'review:resolved': ({ reviewId, by }) => [{ reviewId, by }, 'Review decided.'],
  'review:applied': ({ reviewId, problem }) => [
    { reviewId },
    problem === undefined ? 'Review applied.' : 'Review not applied.'
  ],
  'tool:approval_resolved': ({ callId, approved, by, args }) => [
    { callId, by, ...(args === undefined ? {} : { edited: true }) },
    approved ? 'Tool call approved.' : 'Tool call rejected.'
  ],
  'tool:allowed': ({ server, name }) => [{ server, tool: name }, 'Tool allowed for this session.'],
  'tool:allow_revoked': ({ server, name }) => [{ server, tool: name }, 'Tool no longer allowed for this session.'],
  'tool:result': ({ callId }) => [
    { callId, code: 'outcome_unknown' },
    'Tool call was interrupted by the end of its server; whether it took effect is unknown.'
  ],
  'agent:error': ({ turnId, code }) => [{ turnId, code }, 'Turn failed.'],
  'turn:end': ({ turnId, reason }) => [{ turnId, reason }, 'Turn ended.'],
  'session:notice': ({ code }) => [{ code }, 'Notice shown in the session.'],
  'session:settings': ({ effort, temperature, maxOutputTokens }) => [
    { effort, temperature, maxOutputTokens },
    'Session settings changed.'
  ],
  'history:reset': () => [{}, 'History reset.'],
  'limit:raised': ({ tokens }) => [{ tokens }, 'Spending limit raised.']
}

export interface LoggedCall {
  sessionId: string
  turnId: string
  callId: string
  server: string
  tool: string
}

const ENDS: Partial<Record<CallEnd['outcome'], string>> = {
  ok: 'Tool call finished.',
  refused: 'Tool call refused.',
  unknown: 'Tool call failed; whether it took effect is unknown.'
}

/** `ms` is the time from the approval to the end. */
export function logCallEnd(logger: Logger, call: LoggedCall, { outcome, code, calledMs }: CallEnd, ms: number): void {
  // A tool that reports an error has no error code of ours.
  const why = outcome === 'ok' ? {} : { code: code ?? outcome }
  const text =
    code === 'cancelled'
      ? 'Tool call cancelled.'
      : (ENDS[outcome] ?? (calledMs === undefined ? 'Tool call did not begin.' : 'Tool call failed.'))
  logger.info({ ...call, ...why, ms: Math.round(ms) }, text)
}

interface KnownCall {
  turnId: unknown
  server: unknown
  tool: unknown
  isStartedHere?: true
}

const MAX_KNOWN_CALLS = 1000

/** `interrupted` is called for a call that ended with the instance that ran it, by the instance that records this. */
export function logSessions(
  feed: SessionFeed,
  logger: Logger,
  interrupted: (sessionId: string, callId: string) => void
): void {
  /** Calls without a result yet, as far as this instance knows. */
  const calls = new BoundedMap<string, KnownCall>(MAX_KNOWN_CALLS)
  const follow = ({ type, data }: StoredEvent): KnownCall | undefined => {
    const callId = String(data.callId)
    const known = calls.get(callId)
    if (type === 'tool:approval_required') {
      calls.set(callId, { turnId: data.turnId, server: data.server, tool: data.name })
    }
    if (type === 'tool:started' && known) known.isStartedHere = true
    if (type === 'tool:result' || data.approved === false) calls.delete(callId)
    return known
  }
  feed.subscribe({
    stored(sessionId, events) {
      for (const event of events) {
        const { isStartedHere, ...call } = follow(event) ?? {}
        // `logCallEnd` reports the end of a call that ran here.
        if (event.type === 'tool:result' && (isStartedHere || event.data.interruptedBy !== 'server')) continue
        if (event.type === 'tool:result') interrupted(sessionId, String(event.data.callId))
        const [fields, sentence] = LINES[event.type]?.(event.data, event.seq) ?? []
        if (sentence !== undefined) logger.info({ sessionId, ...call, ...fields }, sentence)
      }
    },
    gone: (sessionId) => logger.info({ sessionId }, 'Session removed.'),
    lost: (sessionId) => logger.warn({ sessionId }, 'Session lost, because the store was emptied.'),
    revoked: (sessionId) => logger.info({ sessionId }, 'Session token replaced; its connections are closed.')
  })
}
