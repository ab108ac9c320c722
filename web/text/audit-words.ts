import type { AuditEntry, AuditOutcome } from '../../contract/audit.ts'

const GOOD = 'bg-ok-soft text-ok'
const BAD = 'bg-danger-soft text-danger'
const UNSURE = 'bg-warn-soft text-warn'
const PLAIN = 'bg-sunken text-muted'

export const OUTCOMES: Record<AuditOutcome, { label: string; chip: string }> = {
  waiting: { label: 'waits for approval', chip: UNSURE },
  running: { label: 'running', chip: PLAIN },
  ok: { label: 'done', chip: GOOD },
  tool_error: { label: 'the tool reported an error', chip: BAD },
  refused: { label: 'refused', chip: UNSURE },
  failed: { label: 'failed', chip: BAD },
  cancelled: { label: 'cancelled', chip: PLAIN },
  asked: { label: 'asked the client', chip: UNSURE },
  unknown: { label: 'outcome unknown', chip: BAD },
  chosen: { label: 'chose a tool', chip: PLAIN },
  found: { label: 'found tools', chip: PLAIN },
  abstained: { label: 'was not sure enough', chip: UNSURE },
  needs_choice: { label: 'asked to choose', chip: UNSURE },
  needs_params: { label: 'asked for parameters', chip: UNSURE },
  needs_confirmation: { label: 'asked for confirmation', chip: UNSURE }
}

/** Words for the decisions that a person made on the page. */
export const OWN_ACTIONS: Partial<Record<string, string>> = {
  review_changes: 'You decided on a review',
  keep_changes: 'You kept the changes of a preview',
  discard_changes: 'You discarded the changes of a preview',
  revert_changes: 'You undid changes'
}

const DOORS = { stdio: 'a client over stdio', http: 'a client over HTTP', chat: 'the chat' }

export function outcomeWords(outcome: string): { label: string; chip: string } {
  return OUTCOMES[outcome as AuditOutcome] ?? { label: outcome, chip: PLAIN }
}

/** Names the caller. The name of a client is its own claim, so the words say that. */
export function askerWords({ door, client }: Pick<AuditEntry, 'door' | 'client'>): string {
  return client === undefined ? DOORS[door] : `${DOORS[door]} that calls itself ${client}`
}
