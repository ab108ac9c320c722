import type { Logger } from '../../lib/logger.ts'
import type { ApprovalInbox } from '../../policy/approval-inbox.ts'
import { ChangedTools } from '../../policy/changed-tools.ts'
import type { DefinitionGuard } from '../../policy/definition-guard.ts'
import type { KeyValueStore } from '../../storage/key-value-store.ts'
import type { Approvals } from './approve-call.ts'
import { ApprovedRounds } from './approved-rounds.ts'
import { Continuations } from './continuations.ts'

export function openApprovals(
  { keyValues, inbox, guard }: { keyValues: KeyValueStore; inbox: ApprovalInbox; guard: DefinitionGuard },
  logger: Logger,
  options: Pick<Approvals, 'waitMs' | 'asksAboutChange'>
): Approvals {
  return {
    inbox,
    definitions: new ChangedTools(guard, logger),
    continuations: new Continuations(keyValues, Math.ceil(options.waitMs / 1000)),
    remembered: new Set(),
    rounds: new ApprovedRounds(),
    ...options
  }
}
