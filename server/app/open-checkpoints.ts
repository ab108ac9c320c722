/** Opens the store for the files of sessions: the folder in DATA_DIR, or the bucket that CHECKPOINT_STORE names. */
import type { Settings } from '../config/settings.ts'
import type { Logger } from '../lib/logger.ts'
import type { Operation } from '../lib/observed.ts'
import type { CheckpointStore } from '../storage/checkpoint-store.ts'
import { openCheckpointStore } from '../storage/checkpoints/checkpoint-files.ts'
import type { Bucket } from '../storage/object-checkpoints/open-bucket.ts'
import type { Store } from '../storage/store.ts'
import { dataPaths } from './data-paths.ts'

const MB = 1024 * 1024

type Report = (part: string, operation: Operation) => void

/** Returns undefined if the files are in the folder. */
export async function openBucket(
  settings: Settings,
  logger: Logger,
  report: Report = () => {}
): Promise<Bucket | undefined> {
  const { CHECKPOINT_STORE: address, S3_ENDPOINT: endpoint, S3_REGION: region } = settings
  if (address === undefined) return undefined
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = settings
  const { AWS_SESSION_TOKEN: sessionToken } = settings
  const credentials =
    accessKeyId && secretAccessKey ? { accessKeyId, secretAccessKey, ...(sessionToken && { sessionToken }) } : undefined
  const { Bucket: Opened } = await import('../storage/object-checkpoints/open-bucket.ts')
  return new Opened({
    ...{ address, endpoint, region, credentials },
    isPathStyle: (settings.S3_PATH_STYLE ?? String(endpoint !== undefined)) === 'true',
    cache: { dir: dataPaths(settings.DATA_DIR).objects, maxBytes: settings.CHECKPOINT_CACHE_MB * MB },
    report: (operation) => report('objects', operation),
    logger,
    looked: (isHit) => report('object-cache', { name: isHit ? 'hit' : 'miss', ms: 0 })
  })
}

export function openCheckpoints(
  settings: Settings,
  store: Store,
  bucket: Bucket | undefined,
  logger: Logger
): CheckpointStore {
  const maxSessionBytes = settings.SANDBOX_WORKSPACE_MB * 4 * MB
  const history = { maxBytes: settings.HISTORY_MB * MB, keptMs: settings.RETENTION_DAYS * 86_400_000 }
  if (bucket) return bucket.openCheckpoints(store, { maxBytes: maxSessionBytes, history, logger })
  const { checkpoints: dir } = dataPaths(settings.DATA_DIR)
  const limits = { maxHistoryBytes: history.maxBytes, historyMs: history.keptMs }
  return openCheckpointStore({ dir, maxSessionBytes, ...limits, logger })
}
