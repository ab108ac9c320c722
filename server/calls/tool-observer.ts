import type { AuditOutcome } from '../../contract/audit.ts'
import type { Caller } from './caller.ts'

interface CallFact {
  server: string
  door: Caller['door']
  outcome: AuditOutcome
  /** Time from sending the call to its result; undefined if the call was never sent. */
  ms: number | undefined
  attempts: number
}

/** Observer for metrics. It must be fast and must not throw. */
export interface ToolObserver {
  called?(fact: CallFact): void
  routed?(by: string, outcome: AuditOutcome): void
  /** `again`: the server had already run in this process. */
  started?(server: string, ms: number, again: boolean): void
  startFailed?(server: string, code: string): void
  /** The egress proxy refused a connection of a server in a sandbox. */
  denied?(server: string): void
}
