/** Opens the configured store: Redis, or SQLite in the data folder. Loads only the code of that store. */
import type { Settings } from '../config/settings.ts'
import type { Logger } from '../lib/logger.ts'
import { isRestoreUnfinished, restoreUnfinished } from '../storage/backup/unfinished-restore.ts'
import { deploymentFile, readDeploymentId } from '../storage/deployment-file.ts'
import type { Patience } from '../storage/redis/redis-client.ts'
import type { Store } from '../storage/store.ts'
import { dataPaths } from './data-paths.ts'

export interface OpenStoreOptions {
  patience?: Patience | undefined
  /** The id for an empty store; by default the one stored in the data folder. */
  deploymentId?: string
}

export async function openStore(settings: Settings, logger: Logger, options: OpenStoreOptions = {}): Promise<Store> {
  const deploymentId = options.deploymentId ?? readDeploymentId(await deploymentFileOf(settings))
  const { REDIS_URL: url, DEPLOYMENT: deployment } = settings
  if (url) {
    const { openRedisStore } = await import('../storage/redis/open-redis-store.ts')
    return openRedisStore({ url, deployment, deploymentId, patience: options.patience, logger })
  }
  const { root: dataDir } = dataPaths(settings.DATA_DIR)
  if (isRestoreUnfinished(dataDir)) throw restoreUnfinished(dataDir)
  const { openEmbeddedStore } = await import('../storage/embedded/open-embedded-store.ts')
  return openEmbeddedStore({ dataDir, deploymentId, logger })
}

/** Explains why DATA_DIR can't be the folder of this deployment; `serve` would refuse to start. */
export async function findWrongFolder(settings: Settings, store: Store, logger: Logger): Promise<string | undefined> {
  // The embedded store is in the folder itself; a bucket has a marker of its own.
  if (!settings.REDIS_URL || settings.CHECKPOINT_STORE) return undefined
  const { findWrongDataDir } = await import('../storage/claim-data-dir.ts')
  const { openCheckpointStore } = await import('../storage/checkpoints/checkpoint-files.ts')
  const { root: dataDir, checkpoints: dir } = dataPaths(settings.DATA_DIR)
  const checkpoints = openCheckpointStore({ dir, maxSessionBytes: 0, logger })
  return findWrongDataDir({ dataDir, file: await deploymentFileOf(settings), store, checkpoints })
}

/** The file in the data folder that contains the deployment id. */
export async function deploymentFileOf({ DATA_DIR, REDIS_URL, DEPLOYMENT }: Settings): Promise<string> {
  const { root } = dataPaths(DATA_DIR)
  if (!REDIS_URL) return deploymentFile(root, 'embedded')
  const { redisAddress } = await import('../storage/redis/redis-client.ts')
  return deploymentFile(root, `${redisAddress(REDIS_URL)} ${DEPLOYMENT}`)
}
