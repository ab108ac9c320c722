import type { CallEntry } from '../../contract/transcript.ts'

/** How a call was interrupted; undefined if it was not. */
export function interruptionWords({ outcome, interruptedBy }: NonNullable<CallEntry['result']>): string | undefined {
  if (interruptedBy === 'server') return 'Outcome unknown: the server was restarted'
  if (outcome === 'unknown') return 'Outcome unknown'
  return interruptedBy === 'person' ? 'Stopped; it may have run in part' : undefined
}
