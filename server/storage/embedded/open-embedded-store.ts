/**
 * The store for one machine: SQLite in the data folder, which several processes may open at once. Owns sessions and events, not
 * the files of a workspace. Invariant: every operation is one transaction, so what was acknowledged survives a kill of the
 * process.
 */
import type { Logger } from '../../lib/logger.ts'
import type { Store } from '../store.ts'
import { openDatabase } from './database.ts'
import { sqliteEventLog } from './sqlite-event-log.ts'
import { sqliteFileHeads } from './sqlite-file-heads.ts'
import { sqliteKeyValueStore } from './sqlite-key-value-store.ts'
import { sqliteSessionStore } from './sqlite-session-store.ts'

export interface EmbeddedStoreOptions {
  dataDir: string
  /** The deployment's id from the data folder, if it has one; a new database gets it. */
  deploymentId?: string | undefined
  logger: Logger
}

export async function openEmbeddedStore(options: EmbeddedStoreOptions): Promise<Store> {
  const db = await openDatabase(options.dataDir)
  options.logger.debug({ dataDir: options.dataDir }, 'embedded store open')
  return {
    sessions: sqliteSessionStore(db, options.deploymentId),
    events: sqliteEventLog(db),
    keyValues: sqliteKeyValueStore(db),
    heads: sqliteFileHeads(db),
    close: async () => db.close()
  }
}
