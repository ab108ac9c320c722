import { type CallEnd, type RouteRecord, since } from '../../audit/audit.ts'
import { callFailed, type Stage } from '../../audit/call-end.ts'
import { traced } from '../../calls/tracing/tracing.ts'
import { ApprovalPending } from '../../code/program-call.ts'
import { InputNeeded } from '../asking/client-prompter.ts'
import type { GatewayServices } from '../gateway-services.ts'

export type RouteSummary = Pick<RouteRecord, 'candidates' | 'outcome' | 'server' | 'tool'>

/** Makes a decision and records it, also if it fails, before anything else happens. */
export async function recordDecision<T>(
  { audit, tracing }: GatewayServices,
  about: Pick<RouteRecord, 'caller' | 'by' | 'request' | 'server' | 'tool'>,
  decide: () => Promise<T>,
  summarize: (decision: T) => RouteSummary | undefined
): Promise<T> {
  const began = performance.now()
  let decision: T
  try {
    decision = await traced(tracing, 'routing', {}, decide)
  } catch (error) {
    try {
      audit.decided({ ...about, candidates: [], ms: since(began), ...endOf(error, 'deciding') })
    } catch {
      // The caller must see the original error; the audit log counts what it could not record.
    }
    throw error
  }
  const summary = summarize(decision)
  if (summary) audit.decided({ ...about, ...summary, candidates: summary.candidates.map(bare), ms: since(began) })
  return decision
}

/** How the audit log records a call that did not finish. */
export function endOf(error: unknown, stage: Stage): CallEnd {
  // Not a failure: a person is asked, and the call is made again.
  return error instanceof InputNeeded || error instanceof ApprovalPending
    ? { outcome: 'asked' }
    : callFailed(error, stage)
}

function bare({ server, tool, confidence }: RouteRecord['candidates'][number]) {
  return { server, tool, confidence: Math.round(confidence * 1000) / 1000 }
}
