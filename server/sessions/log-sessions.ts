/**
 * Writes a session's life to the log, one line for each thing that an operator asks about: opened, approved by whom, ended and
 * why. Names and codes only: what people and models write stays out of the log.
 */
import type { Logger } from '../lib/logger.ts'
import type { StoredEvent } from '../storage/event-log.ts'
import type { CallEnd } from '../tools/audit/audit.ts'
import type { SessionFeed } from './session-feed.ts'

type Line = [fields: Record<string, unknown>, sentence: string]

const LINES: Record<string, (data: StoredEvent['data'], seq: number) => Line> = {
  // Choosing its first model is the first thing that happens in a session.
  'model:selected': ({ model }, seq) => [{ model }, seq === 1 ? 'Session opened.' : 'Model selected.'],
  'user:message': ({ turnId }) => [{ turnId }, 'Turn started.'],
  'tool:approval_required': ({ turnId, callId, server, name }) => [
    { turnId, callId, server, tool: name },
    'Tool call waits for approval.'
  ],
  'tool:approval_resolved': ({ callId, approved, by, args }) => [
    { callId, by, ...(args === undefined ? {} : { edited: true }) },
    approved ? 'Tool call approved.' : 'Tool call rejected.'
  ],
  'tool:allowed': ({ server, name }) => [{ server, tool: name }, 'Tool allowed for this session.'],
  'tool:allow_revoked': ({ server, name }) => [{ server, tool: name }, 'Tool no longer allowed for this session.'],
  'agent:error': ({ turnId, code }) => [{ turnId, code }, 'Turn failed.'],
  'turn:end': ({ turnId, reason }) => [{ turnId, reason }, 'Turn ended.'],
  'session:notice': ({ code }) => [{ code }, 'Notice shown in the session.'],
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
  cancelled: 'Tool call cancelled.',
  unknown: 'Tool call failed; whether it took effect is unknown.'
}

/** `ms` is the time from the approval to the end. */
export function logCallEnd(logger: Logger, call: LoggedCall, { outcome, code }: CallEnd, ms: number): void {
  // A tool that reports an error has no code of ours.
  const why = outcome === 'ok' ? {} : { code: code ?? outcome }
  logger.info({ ...call, ...why, ms: Math.round(ms) }, ENDS[outcome] ?? 'Tool call failed.')
}

export function logSessions(feed: SessionFeed, logger: Logger): void {
  feed.subscribe({
    stored(sessionId, events) {
      for (const { type, data, seq } of events) {
        const [fields, sentence] = LINES[type]?.(data, seq) ?? []
        if (sentence !== undefined) logger.info({ sessionId, ...fields }, sentence)
      }
    },
    gone: (sessionId) => logger.info({ sessionId }, 'Session removed.')
  })
}
