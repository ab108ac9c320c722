/**
 * The parts that the workspace and the gateway share. `serve` opens them once for both; the gateway alone opens them with its first
 * call.
 */
import type { ToolObserver } from '../calls/tool-observer.ts'
import type { Settings } from '../config/settings.ts'
import { userDefaults } from '../config/user-folders.ts'
import type { Logger } from '../lib/logger.ts'
import { ApprovalInbox } from '../policy/approval-inbox.ts'
import { createDefinitionGuard, type DefinitionGuard } from '../policy/definition-guard.ts'
import type { EventLog } from '../storage/event-log.ts'
import { StoreFormat } from '../storage/format/store-format.ts'
import type { KeyValueStore } from '../storage/key-value-store.ts'
import type { Store } from '../storage/store.ts'
import { type AuditLog, openAuditLog } from './app-audit.ts'
import { findServe } from './gateway/registration.ts'
import { openStore } from './open-store.ts'

export interface SharedParts {
  keyValues: KeyValueStore
  events: EventLog
  auditLog: AuditLog
  inbox: ApprovalInbox
  guard: DefinitionGuard
  /** Tells what all instances on the store can read. */
  format?: StoreFormat | undefined
  /** The folder of the store if it is that of the user's `serve`: no server may see it. */
  storeDir?: string | undefined
}

export function sharedParts(
  { store, format }: { store: Pick<Store, 'keyValues' | 'events'>; format?: StoreFormat },
  auditLog: AuditLog
): SharedParts {
  const { keyValues, events } = store
  const [inbox, guard] = [new ApprovalInbox(keyValues), createDefinitionGuard(keyValues)]
  return { keyValues, events, auditLog, inbox, guard, format }
}

/** With the user's usual folder, the store is that of the user's `serve` while it runs; all other files stay where they are. */
function storeToJoin(settings: Settings, environment: Record<string, string | undefined>): string | undefined {
  const isUsual = !settings.REDIS_URL && settings.DATA_DIR === userDefaults(environment).DATA_DIR
  return isUsual ? findServe(environment) : undefined
}

export async function openSharedParts(
  settings: Settings,
  logger: Logger,
  { environment, observer }: { environment: Record<string, string | undefined>; observer?: ToolObserver | undefined }
): Promise<SharedParts & { close(): Promise<void> }> {
  const storeDir = storeToJoin(settings, environment)
  const store = await openStore(storeDir === undefined ? settings : { ...settings, DATA_DIR: storeDir }, logger)
  const auditLog = openAuditLog(settings, observer)
  return {
    ...sharedParts({ store, format: new StoreFormat(store) }, auditLog),
    storeDir,
    async close() {
      await auditLog.close()
      await store.close()
    }
  }
}
