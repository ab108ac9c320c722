/**
 * The store for several instances: one Redis (not a cluster: indexes and sessions share scripts). Owns sessions and events; not
 * the files of a workspace. Invariant: a verb is one script under Redis's own clock. Redis must keep what it acknowledged
 * (`appendonly yes`; with `appendfsync everysec` its crash may lose a second) and must not evict (`maxmemory-policy noeviction`).
 */
import type { Logger } from '../../lib/logger.ts'
import type { Store } from '../store.ts'
import { migrateKeys } from './migrate-keys.ts'
import { connectRedisPatiently, type Patience } from './redis-client.ts'
import { redisEventLog } from './redis-event-log.ts'
import { redisKeyValueStore } from './redis-key-value-store.ts'
import { DEFAULT_DEPLOYMENT, deploymentPrefix, redisKeys } from './redis-keys.ts'
import { RedisSessionStore } from './redis-session-store.ts'

export interface RedisStoreOptions {
  url: string
  logger: Logger
  /** Undefined: a Redis that does not answer is not tried again. */
  patience?: Patience | undefined
  /** The deployment's name, which all its keys carry. */
  deployment?: string | undefined
  keyPrefix?: string
  /** The deployment's id, where the data folder remembers one: an emptied Redis gets it back. */
  deploymentId?: string | undefined
}

export async function openRedisStore(options: RedisStoreOptions): Promise<Store> {
  const client = await connectRedisPatiently(options.url, options.logger, options.patience ?? { ms: 0 })
  const { deployment = DEFAULT_DEPLOYMENT } = options
  try {
    await migrateKeys(client, deployment, options.logger)
  } catch (error) {
    await client.close()
    throw error
  }
  const keys = redisKeys(options.keyPrefix ?? deploymentPrefix(deployment))
  return {
    sessions: new RedisSessionStore(client, keys, options.deploymentId),
    events: redisEventLog(client, keys),
    keyValues: redisKeyValueStore(client, keys),
    close: () => client.close()
  }
}
