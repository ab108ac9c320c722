import type { Logger } from '../../lib/logger.ts'
import type { KeyValueStore } from '../../storage/key-value-store.ts'
import { ApprovalInbox } from '../../tools/approvals/approval-inbox.ts'
import { ChangedTools } from '../../tools/approvals/changed-tools.ts'
import { createDefinitionGuard } from '../../tools/definition-guard.ts'
import type { Approvals } from './approve-call.ts'
import { ApprovedRounds } from './approved-rounds.ts'
import { Continuations } from './continuations.ts'

export function openApprovals(
  facts: KeyValueStore,
  logger: Logger,
  options: Pick<Approvals, 'waitMs' | 'asksAboutChange'>
): Approvals {
  return {
    inbox: new ApprovalInbox(facts),
    definitions: new ChangedTools(createDefinitionGuard(facts), logger),
    continuations: new Continuations(facts, Math.ceil(options.waitMs / 1000)),
    remembered: new Set(),
    rounds: new ApprovedRounds(),
    ...options
  }
}
