import type { NewCard, PostedCard } from '../policy/approval-inbox.ts'
import type { ProgramCall } from './program-call.ts'
import { sourcesOf } from './provenance.ts'
import type { RunLog } from './run-log.ts'

const MAX_SOURCE_CHARS = 300

/**
 * The card of a program's call. Its id follows from the call and what the person sees, so that a run that asks again after a crash
 * gets the answer to the same card.
 */
export function programCard(
  { runId, state }: Pick<RunLog, 'runId' | 'state'>,
  { n, line, args }: ProgramCall,
  card: NewCard,
  expiresAt: number
): PostedCard {
  const source = state.program?.code.split('\n')[line - 1]?.trim().slice(0, MAX_SOURCE_CHARS) ?? ''
  return {
    ...card,
    id: `${runId}.${n}.${card.hash}`,
    createdAt: Date.now(),
    expiresAt,
    code: { runId, n, line, source, sources: sourcesOf(args, state) }
  }
}
