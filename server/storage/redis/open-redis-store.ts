/**
 * The store for several instances: one Redis (not a cluster, because scripts use indexes and sessions together). Owns sessions
 * and events, not the files of a workspace. Invariant: every operation is one script with Redis's own clock. Redis must keep what
 * it acknowledged (`appendonly yes`; with `appendfsync everysec` its crash may lose a second) and must not evict
 * (`maxmemory-policy noeviction`).
 */
import type { Logger } from '../../lib/logger.ts'
import { restoreUnfinished } from '../backup/unfinished-restore.ts'
import type { Store } from '../store.ts'
import { connectRedisWithRetries, type Patience } from './redis-client.ts'
import { findRedisRisks } from './redis-durability.ts'
import { redisEventLog } from './redis-event-log.ts'
import { redisFileHeads } from './redis-file-heads.ts'
import { redisKeyValueStore } from './redis-key-value-store.ts'
import { DEFAULT_DEPLOYMENT, deploymentPrefix, redisKeys } from './redis-keys.ts'
import { redisSessionStore } from './redis-session-store.ts'
import { unfinishedRestore } from './restore-marker.ts'

export interface RedisStoreOptions {
  url: string
  logger: Logger
  /** Without it, a Redis that does not respond is not retried. */
  patience?: Patience | undefined
  /** The deployment's name, which is part of all keys. */
  deployment?: string | undefined
  keyPrefix?: string
  /** For the command that restores or moves the data itself. */
  isRestoring?: boolean
  /** The deployment's id from the data folder, if it has one; an emptied Redis gets it back. */
  deploymentId?: string | undefined
}

export async function openRedisStore(options: RedisStoreOptions): Promise<Store> {
  const client = await connectRedisWithRetries(options.url, options.logger, options.patience ?? { ms: 0 })
  const { deployment = DEFAULT_DEPLOYMENT } = options
  try {
    const unfinished = await unfinishedRestore(client, deploymentPrefix(deployment))
    if (unfinished !== undefined && !options.isRestoring)
      throw restoreUnfinished(`the deployment "${deployment}" in Redis and ${unfinished}`)
  } catch (error) {
    await client.close()
    throw error
  }
  const keys = redisKeys(options.keyPrefix ?? deploymentPrefix(deployment))
  return {
    sessions: redisSessionStore(client, keys, options.deploymentId),
    events: redisEventLog(client, keys),
    keyValues: redisKeyValueStore(client, keys),
    heads: redisFileHeads(client, keys),
    findRisks: () => findRedisRisks(client),
    close: () => client.close()
  }
}
