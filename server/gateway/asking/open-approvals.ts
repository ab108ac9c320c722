import type { Logger } from '../../lib/logger.ts'
import { ApprovalInbox } from '../../policy/approval-inbox.ts'
import { ChangedTools } from '../../policy/changed-tools.ts'
import { createDefinitionGuard } from '../../policy/definition-guard.ts'
import type { KeyValueStore } from '../../storage/key-value-store.ts'
import type { Approvals } from './approve-call.ts'
import { ApprovedRounds } from './approved-rounds.ts'
import { Continuations } from './continuations.ts'

export function openApprovals(
  keyValues: KeyValueStore,
  logger: Logger,
  options: Pick<Approvals, 'waitMs' | 'asksAboutChange'>
): Approvals {
  return {
    inbox: new ApprovalInbox(keyValues),
    definitions: new ChangedTools(createDefinitionGuard(keyValues), logger),
    continuations: new Continuations(keyValues, Math.ceil(options.waitMs / 1000)),
    remembered: new Set(),
    rounds: new ApprovedRounds(),
    ...options
  }
}
