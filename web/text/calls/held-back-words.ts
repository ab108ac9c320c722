import { waitsForPerson } from '../../../contract/call-entry.ts'
import type { CallEntry, Transcript } from '../../../contract/transcript.ts'
import { WORKSPACE } from './call-summary.ts'

/** Calls to the sandbox run in the order of their step. Says what an approved one waits for; undefined if it waits for nothing. */
export function heldBackWords({ calls }: Pick<Transcript, 'calls'>, call: CallEntry): string | undefined {
  if (call.server !== WORKSPACE || call.startedAt !== undefined || call.result) return undefined
  const earlier = Object.values(calls).filter(
    ({ turnId, server, requestedAt, queuePosition, result, decision, callId }) =>
      callId !== call.callId &&
      turnId === call.turnId &&
      server === WORKSPACE &&
      requestedAt <= call.requestedAt &&
      queuePosition < call.queuePosition &&
      !result &&
      decision?.approved !== false
  )
  const waiting = earlier.filter(waitsForPerson)
  const [first] = waiting
  if (first)
    return `Waits for your decision on ${waiting.length === 1 ? `call ${first.queuePosition} of ${first.totalInQueue}` : `${waiting.length} earlier calls`}`
  return earlier.length > 0 ? 'Waits for the call before it' : undefined
}
