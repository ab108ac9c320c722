/** The files of sessions on one side of a move: a folder, or a bucket. The source is only read. */
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { cp, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Settings } from '../../config/settings.ts'
import type { Logger } from '../../lib/logger.ts'
import type { Checkpoint, CheckpointStore } from '../../storage/checkpoint-store.ts'
import { folderName } from '../../storage/checkpoints/checkpoint-files.ts'
import { CONTENT_NAME } from '../../storage/checkpoints/content-files.ts'
import type { FilesPlace } from '../../storage/migrate/copy-session-files.ts'
import type { Bucket } from '../../storage/object-checkpoints/open-bucket.ts'
import type { Store } from '../../storage/store.ts'
import { dataPaths } from '../data-paths.ts'
import { openBucket, openCheckpoints } from '../open-checkpoints.ts'

export interface MigrationFiles extends FilesPlace {
  checkpoints: CheckpointStore
  bucket: Bucket | undefined
  close(): void
}

/** A move copies everything. The limits count again when the target runs. */
const UNLIMITED = {
  SANDBOX_WORKSPACE_MB: Number.POSITIVE_INFINITY,
  HISTORY_MB: Number.POSITIVE_INFINITY,
  RETENTION_DAYS: Number.POSITIVE_INFINITY
}

/** Reads what is stored, and nothing that was cached before. */
export async function openMigrationFiles(
  settings: Settings,
  store: Store,
  work: string,
  logger: Logger
): Promise<MigrationFiles> {
  // The cache goes into a folder of its own.
  const apart = { ...settings, DATA_DIR: join(work, randomUUID()) }
  const bucket = await openBucket(apart, logger)
  const checkpoints = openCheckpoints({ ...settings, ...UNLIMITED }, store, bucket, logger)
  return {
    checkpoints,
    bucket,
    contents: checkpoints,
    open: bucket
      ? (sessionId, epoch) => checkpoints.open(sessionId, epoch)
      : (sessionId, epoch) => openCopy(settings, store, work, sessionId, epoch, logger),
    contentHashes: bucket
      ? (sessionId) => bucket.contentHashes(sessionId)
      : (sessionId) => hashesIn(join(dataPaths(settings.DATA_DIR).checkpoints, folderName(sessionId))),
    close: () => bucket?.objects.close()
  }
}

/** Opening a session's folder writes to it, so a copy is opened. */
async function openCopy(
  settings: Settings,
  store: Store,
  work: string,
  sessionId: string,
  epoch: number,
  logger: Logger
): Promise<Checkpoint> {
  const DATA_DIR = join(work, randomUUID())
  const [from, to] = [settings.DATA_DIR, DATA_DIR].map((dir) => join(dataPaths(dir).checkpoints, folderName(sessionId)))
  if (from && to && existsSync(from)) await cp(from, to, { recursive: true })
  const checkpoint = await openCheckpoints({ ...settings, ...UNLIMITED, DATA_DIR }, store, undefined, logger).open(
    sessionId,
    epoch
  )
  const close = checkpoint.close.bind(checkpoint)
  checkpoint.close = async () => {
    await close()
    await rm(DATA_DIR, { recursive: true, force: true })
  }
  return checkpoint
}

async function hashesIn(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch(() => [])
  return names.filter((name) => CONTENT_NAME.test(name)).map((name) => name.slice(0, 64))
}
