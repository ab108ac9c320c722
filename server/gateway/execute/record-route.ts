import { type CallEnd, type RouteRecord, since } from '../../audit/audit.ts'
import { callFailed, type Stage } from '../../audit/call-end.ts'
import { traced } from '../../calls/tracing/tracing.ts'
import { InputNeeded } from '../asking/client-prompter.ts'
import type { GatewayServices } from '../gateway-services.ts'

export type RouteSeen = Pick<RouteRecord, 'candidates' | 'outcome' | 'server' | 'tool'>

/** Has a decision made and puts it on record before anything is done about it; also one that failed. */
export async function recordDecision<T>(
  { audit, tracing }: GatewayServices,
  asked: Pick<RouteRecord, 'caller' | 'by' | 'request' | 'server' | 'tool'>,
  decide: () => Promise<T>,
  seen: (decision: T) => RouteSeen | undefined
): Promise<T> {
  const began = performance.now()
  let decision: T
  try {
    decision = await traced(tracing, 'routing', {}, decide)
  } catch (error) {
    try {
      audit.decided({ ...asked, candidates: [], ms: since(began), ...endOf(error, 'deciding') })
    } catch {
      // What went wrong first is what the caller has to hear; the trail keeps count of what it could not take.
    }
    throw error
  }
  const facts = seen(decision)
  if (facts) audit.decided({ ...asked, ...facts, candidates: facts.candidates.map(bare), ms: since(began) })
  return decision
}

/** What the record says of a call that did not come to its end. */
export function endOf(error: unknown, stage: Stage): CallEnd {
  // Not a failure: the client is asked, and calls again.
  return error instanceof InputNeeded ? { outcome: 'asked' } : callFailed(error, stage)
}

function bare({ server, tool, confidence }: RouteRecord['candidates'][number]) {
  return { server, tool, confidence: Math.round(confidence * 1000) / 1000 }
}
