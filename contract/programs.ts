/** Programs of the model in a chat (`run_code`), and the calls that they make. */

import { type CallEntry, waitsForPerson } from './call-entry.ts'
import { PROGRAMS } from './own-sources.ts'

export const RUN_CODE = 'run_code'

export function isProgram({ server, name }: Pick<CallEntry, 'server' | 'name'>): boolean {
  return server === PROGRAMS && name === RUN_CODE
}

/** The calls that a program has made so far, in their order. */
export function callsOfProgram(calls: Readonly<Record<string, CallEntry>>, callId: string): CallEntry[] {
  return Object.values(calls)
    .filter(({ program }) => program?.callId === callId)
    .sort((a, b) => (a.program?.n ?? 0) - (b.program?.n ?? 0) || a.requestedAt - b.requestedAt)
}

/** The call of an entry of the transcript, and those that it made as a program: they have no entries of their own. */
export function callsOfEntry(
  calls: Readonly<Record<string, CallEntry>>,
  entry: { kind: string; callId?: string }
): CallEntry[] {
  const { kind, callId = '' } = entry
  const call = kind === 'call' && Object.hasOwn(calls, callId) ? calls[callId] : undefined
  if (!call) return []
  return isProgram(call) ? [call, ...callsOfProgram(calls, callId)] : [call]
}

/** Whether a program can't go on before a person decides: all its calls without a result wait for one. */
export function isProgramWaiting(calls: Readonly<Record<string, CallEntry>>, callId: string): boolean {
  const open = callsOfProgram(calls, callId).filter(({ result }) => !result)
  return open.length > 0 && open.every(waitsForPerson)
}

/** The other waiting reads of its program, which one approval can cover. A card with a warning or a change needs its own decision. */
export function otherReads(calls: Readonly<Record<string, CallEntry>>, { callId, program }: CallEntry): CallEntry[] {
  return callsOfProgram(calls, program?.callId ?? '').filter(
    (call) =>
      call.callId !== callId &&
      !call.decision &&
      call.program?.isRead &&
      !call.program.warning &&
      !call.definitionChange &&
      !call.again
  )
}

/** Whether the person has approved the other reads of this program with one of its calls. */
export function coversReads(calls: Readonly<Record<string, CallEntry>>, callId: string): boolean {
  return callsOfProgram(calls, callId).some(({ decision }) => decision?.approved === true && decision.reads === true)
}
