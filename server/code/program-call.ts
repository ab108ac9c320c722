import type { CallKind } from '../../workspace-server/code/code-protocol.ts'
import type { NewCard } from '../policy/approval-inbox.ts'

/** A call that a program makes. `n` counts all calls of its run from 1. */
export interface ProgramCall {
  n: number
  kind: CallKind
  server: string
  tool: string
  args: Record<string, unknown>
  /** The line of the program that makes it; 0 if that is not known. */
  line: number
}

/** The answer that the program gets. A tool's error or a person's rejection is an error in the program, not one of ours. */
export type CallOutcome = { ok: true; value: unknown } | { ok: false; code: string; message: string }

/** A person's answer to the card with this hash. */
export interface Decision {
  hash: string
  approved: boolean
  reason?: string | undefined
}

export interface CallHooks {
  signal: AbortSignal
  /** Called right before the call is sent. If it rejects, the call is not sent. */
  beforeSending(): Promise<void>
  /** Stores what the program gets, before the caller stores that the call is over. Not needed if it stores nothing. */
  record(outcome: CallOutcome): Promise<void>
  /** The recorded answer to a card with this hash. Without one, the call ends with `ApprovalPending`. */
  decided(hash: string): Decision | undefined
  /** How often this call was under way when its process ended, so that nobody knows whether it took effect. */
  interruptions: number
}

/** Makes the calls of programs, with all that a direct call goes through. Each face has its own. */
export interface ProgramCalls {
  run(call: ProgramCall, hooks: CallHooks): Promise<CallOutcome>
}

/** Thrown if a person must decide first. Nothing was sent. */
export class ApprovalPending extends Error {
  readonly card: NewCard

  constructor(card: NewCard) {
    super('A person has to decide first.')
    this.card = card
  }
}

/**
 * Thrown if another instance drives this run, if the run has ended, or if the store can't be reached. The program is not told; it continues
 * later.
 */
export class LostRun extends Error {}

/** The warning on the card of a call that may have taken effect before. */
export function unsureWarning(interruptions: number): string {
  const times = interruptions === 1 ? '' : ` ${interruptions} times`
  return `This call was under way when the server stopped${times}. Nobody knows whether it took effect. Approve only if it may run again; reject, and the program gets an error.`
}

const DEFAULT_MATCHES = 5
const MAX_MATCHES = 20

/** How many tools a program's search returns. */
export function searchLimit(limit: unknown): number {
  return Math.min(Math.max(Math.trunc(Number(limit ?? DEFAULT_MATCHES)) || 1, 1), MAX_MATCHES)
}
