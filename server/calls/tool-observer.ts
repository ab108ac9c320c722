import type { AuditOutcome } from '../../contract/audit.ts'
import type { Caller } from './caller.ts'

interface CallFact {
  server: string
  door: Caller['door']
  outcome: AuditOutcome
  /** From sending the call to its result; undefined for a call that was never sent. */
  ms: number | undefined
  attempts: number
}

/** Hears of what happens to tools and servers, for figures. Must be quick and must not throw. */
export interface ToolObserver {
  called?(fact: CallFact): void
  routed?(by: string, outcome: AuditOutcome): void
  /** `again`: it had run before in this process. */
  started?(server: string, ms: number, again: boolean): void
  startFailed?(server: string, code: string): void
  /** A server in a sandbox wanted out, and might not. */
  denied?(server: string): void
}
