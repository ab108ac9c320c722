/**
 * The parts that the workspace and the gateway share. `serve` opens them once for both; the gateway alone opens them with its first
 * call.
 */
import type { Settings } from '../config/settings.ts'
import type { Logger } from '../lib/logger.ts'
import { ApprovalInbox } from '../policy/approval-inbox.ts'
import { createDefinitionGuard, type DefinitionGuard } from '../policy/definition-guard.ts'
import type { KeyValueStore } from '../storage/key-value-store.ts'
import { type AuditLog, openAuditLog } from './app-audit.ts'
import { openStore } from './open-store.ts'

export interface SharedParts {
  keyValues: KeyValueStore
  auditLog: AuditLog
  inbox: ApprovalInbox
  guard: DefinitionGuard
}

export function sharedParts(keyValues: KeyValueStore, auditLog: AuditLog): SharedParts {
  return { keyValues, auditLog, inbox: new ApprovalInbox(keyValues), guard: createDefinitionGuard(keyValues) }
}

export async function openSharedParts(
  settings: Settings,
  logger: Logger
): Promise<SharedParts & { close(): Promise<void> }> {
  const store = await openStore(settings, logger)
  const auditLog = openAuditLog(settings)
  return {
    ...sharedParts(store.keyValues, auditLog),
    async close() {
      await auditLog.audit.close()
      await store.close()
    }
  }
}
