/** Checks for `doctor` whether this installation can use its bucket. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { openBucket } from '../../app/open-checkpoints.ts'
import { openStore } from '../../app/open-store.ts'
import type { Settings } from '../../config/settings.ts'
import { createLogger } from '../../lib/logger.ts'
import type { Bucket } from '../../storage/object-checkpoints/open-bucket.ts'
import { probeObjects } from '../../storage/objects/probe-objects.ts'
import type { Found } from './doctor-servers.ts'

/** Without a working store, nothing is said about whose bucket it is. */
export async function describeBucket(settings: Settings, hasStore: boolean): Promise<Found> {
  const bucket = await openBucket(settings, createLogger('silent'))
  if (!bucket) return 'none'
  try {
    await bucket.objects.probe()
    await probeObjects(bucket.objects, bucket.prefix)
    const id = (await bucket.owner())?.id
    if (id !== undefined && hasStore && isMade(settings)) await checkOwner(settings, bucket)
    const found = `${settings.CHECKPOINT_STORE}, ${id === undefined ? 'no files yet' : `files of deployment ${id}`}`
    const isApart = settings.REDIS_URL !== undefined && settings.SECRETS_KEY === undefined
    return isApart
      ? { warn: `${found}. Logins to MCP servers stay on this machine: set SECRETS_KEY to share them.` }
      : found
  } finally {
    bucket.objects.close()
  }
}

/** Looking must not create the folder. */
function isMade({ REDIS_URL, DATA_DIR }: Settings): boolean {
  return REDIS_URL !== undefined || existsSync(resolve(DATA_DIR))
}

async function checkOwner(settings: Settings, bucket: Bucket): Promise<void> {
  const store = await openStore(settings, createLogger('silent'))
  try {
    await bucket.checkOwner(store)
  } finally {
    await store.close()
  }
}
