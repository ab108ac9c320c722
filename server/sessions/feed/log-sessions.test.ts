import { expect, it } from 'vitest'
import { createLogger } from '../../lib/logger.ts'
import { logCallEnd, logSessions } from './log-sessions.ts'
import { SessionFeed } from './session-feed.ts'

function open() {
  const written: Record<string, unknown>[] = []
  const feed = new SessionFeed()
  const interrupted: string[] = []
  const logger = createLogger('info', { write: (line: string) => void written.push(JSON.parse(line)) })
  logSessions(feed, logger, (sessionId, callId) => void interrupted.push(`${sessionId} ${callId}`))
  let seq = 1
  const stored = (type: string, data: Record<string, unknown>) => feed.stored('s1', [{ type, data, seq: ++seq, at: 0 }])
  return { feed, stored, written, interrupted }
}

const CALL = { turnId: 't1', callId: 'c1', server: 'mail', name: 'send' }

it('names turn, server and tool in the lines about an answer to an approval', () => {
  const { stored, written } = open()
  stored('tool:approval_required', CALL)
  stored('tool:approval_resolved', { callId: 'c1', approved: false, by: 'human' })
  expect(written[1]).toMatchObject({ sessionId: 's1', turnId: 't1', server: 'mail', tool: 'send', by: 'human' })
  expect(written[1]?.msg).toBe('Tool call rejected.')
})

it('reports a call that an earlier instance did not finish, and no call that ran here', () => {
  const { stored, written, interrupted } = open()
  stored('tool:approval_required', CALL)
  stored('tool:started', { callId: 'c1' })
  stored('tool:result', { callId: 'c1', isError: true, outcome: 'unknown', interruptedBy: 'server', content: [] })
  expect(written).toHaveLength(1)
  stored('tool:result', { callId: 'c2', isError: true, outcome: 'unknown', interruptedBy: 'server', content: [] })
  expect(written[1]).toMatchObject({ sessionId: 's1', callId: 'c2', code: 'outcome_unknown' })
  expect(interrupted).toEqual(['s1 c2'])
})

it('says why a session is gone', () => {
  const { feed, written } = open()
  feed.lost('s1')
  feed.gone('s2')
  expect(written.map(({ sessionId, msg }) => `${sessionId} ${msg}`)).toEqual([
    's1 Session lost, because the store was emptied.',
    's2 Session removed.'
  ])
})

it('says of a call that failed whether it had begun', () => {
  const lines: string[] = []
  const logger = createLogger('info', { write: (line: string) => void lines.push(JSON.parse(line).msg) })
  const call = { sessionId: 's1', turnId: 't1', callId: 'c1', server: 'mail', tool: 'send' }
  logCallEnd(logger, call, { outcome: 'failed', code: 'store_unavailable', calledMs: undefined }, 5)
  logCallEnd(logger, call, { outcome: 'failed', code: 'child_error', calledMs: 3 }, 5)
  expect(lines).toEqual(['Tool call did not begin.', 'Tool call failed.'])
})
