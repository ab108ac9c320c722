/** The session store of one side of a move: SQLite in a folder, or Redis. The source is only read. */
import { existsSync } from 'node:fs'
import { cp, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Settings } from '../../config/settings.ts'
import { AppError } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import type { StoreRow } from '../../storage/backup/store-row.ts'
import { isRestoreUnfinished, markFolder, unmarkFolder } from '../../storage/backup/unfinished-restore.ts'
import type { Store } from '../../storage/store.ts'
import { dataPaths } from '../data-paths.ts'

export interface MigrationStore {
  /** How messages name it. */
  name: string
  rows(): AsyncIterable<StoreRow>
  /** Whether a move to it was interrupted. */
  isUnfinished: boolean
  /** From now on nothing serves it, until `end`. */
  begin(): Promise<void>
  /** Replaces everything. */
  write(rows: AsyncIterable<StoreRow>): Promise<void>
  open(): Promise<Store>
  end(): Promise<void>
  close(): Promise<void>
}

/** Throws `migration_running` if an instance uses it. `work` is a folder for copies. */
export function openMigrationStore(
  settings: Settings,
  side: 'from' | 'to',
  work: string,
  logger: Logger
): Promise<MigrationStore> {
  return settings.REDIS_URL ? openRedis(settings, logger) : openEmbedded(settings, side, work, logger)
}

async function openEmbedded(
  settings: Settings,
  side: 'from' | 'to',
  work: string,
  logger: Logger
): Promise<MigrationStore> {
  const [{ lockDataDir }, rows, { openEmbeddedStore }] = await Promise.all([
    import('../../storage/embedded/data-dir-lock.ts'),
    import('../../storage/embedded/embedded-rows.ts'),
    import('../../storage/embedded/open-embedded-store.ts')
  ])
  const { root: dataDir } = dataPaths(settings.DATA_DIR)
  const isSource = side === 'from'
  if (isSource && !existsSync(join(dataDir, 'store.db'))) {
    const message = `There is no store in ${dataDir}: set DATA_DIR or REDIS_URL in the file of --from.`
    throw new AppError('not-found', 'migration_source', message)
  }
  const lock = existsSync(dataDir) ? lockDataDir(dataDir) : undefined
  return {
    name: `the folder ${dataDir}`,
    rows: () => rows.readEmbeddedRows(dataDir, work),
    isUnfinished: isRestoreUnfinished(dataDir),
    begin: () => markFolder(dataDir),
    write: (all) => rows.writeEmbeddedRows(dataDir, all),
    async open() {
      if (!isSource) return openEmbeddedStore({ dataDir, logger })
      const copy = join(work, 'source')
      await mkdir(copy, { recursive: true })
      // The lock is held, so nobody writes; the log beside the database belongs to it.
      for (const name of ['store.db', 'store.db-wal']) {
        if (existsSync(join(dataDir, name))) await cp(join(dataDir, name), join(copy, name))
      }
      return openEmbeddedStore({ dataDir: copy, logger })
    },
    end: () => unmarkFolder(dataDir),
    close: async () => lock?.release()
  }
}

async function openRedis(settings: Settings, logger: Logger): Promise<MigrationStore> {
  const [{ connectRedis }, { deploymentPrefix }, rows, marker, { openRedisStore }] = await Promise.all([
    import('../../storage/redis/redis-client.ts'),
    import('../../storage/redis/redis-keys.ts'),
    import('../../storage/redis/redis-rows.ts'),
    import('../../storage/redis/restore-marker.ts'),
    import('../../storage/redis/open-redis-store.ts')
  ])
  const { REDIS_URL: url = '', DEPLOYMENT: deployment, DATA_DIR } = settings
  const prefix = deploymentPrefix(deployment)
  const open = () => openRedisStore({ url, deployment, logger, isRestoring: true })
  const store = await open()
  const running = await store.sessions.instances().finally(() => store.close())
  if (running.length > 0) {
    const message = `${running.length} instances use the deployment "${deployment}" in Redis: stop them all, wait ten seconds, then run this again.`
    throw new AppError('conflict', 'migration_running', message)
  }
  const client = await connectRedis(url, logger)
  return {
    name: `the deployment "${deployment}" in Redis`,
    rows: () => rows.readRedisRows(client, prefix),
    isUnfinished: (await marker.unfinishedRestore(client, prefix)) !== undefined,
    begin: () => marker.markRestore(client, prefix, dataPaths(DATA_DIR).root),
    write: (all) => rows.writeRedisRows(client, prefix, all),
    open,
    end: () => marker.unmarkRestore(client, prefix),
    close: () => client.close()
  }
}
