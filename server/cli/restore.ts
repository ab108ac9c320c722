/**
 * `restore` copies a backup into an empty data folder, after checking the hash of every file. It overwrites nothing but what an
 * interrupted restore has left, which is not served.
 */

import { dirname, join, resolve } from 'node:path'
import type { Settings } from '../config/settings.ts'
import { AppError } from '../lib/errors.ts'
import { makeFolder } from '../lib/files/make-folder.ts'
import { createLogger } from '../lib/logger.ts'
import { plural } from '../lib/plural.ts'
import {
  type BackupManifest,
  explainNoSpace,
  makeEmptyFolder,
  restoreFile,
  verifyBackup
} from '../storage/backup/backup-folder.ts'
import { isRestoreUnfinished, markFolder, removeRestored, unmarkFolder } from '../storage/backup/unfinished-restore.ts'
import { lockDataDir } from '../storage/embedded/data-dir-lock.ts'
import type { Command } from './command.ts'
import { say } from './command.ts'
import { usageError } from './usage-error.ts'

export const restoreCommand: Command = {
  name: 'restore',
  summary: 'restore a backup into an empty DATA_DIR',
  usage: ['FROM                              the folder of a backup'],
  mainSettings: ['DATA_DIR', 'REDIS_URL', 'DEPLOYMENT'],
  async run(settings, { words }) {
    const [from, more] = words
    if (from === undefined || more !== undefined) {
      throw usageError('Name one backup: mcp-orchestrator restore FOLDER --data-dir NEW-FOLDER')
    }
    const dir = resolve(from)
    const dataDir = resolve(settings.DATA_DIR)
    say('Checking the backup …')
    const { store, files, madeAt } = await verifyBackup(dir)
    checkKind(store, settings)
    await restoreTo(dataDir, settings, dir, files)
    say(`Restored the backup of ${madeAt} to ${dataDir}.`)
    if (settings.CHECKPOINT_STORE) {
      say(
        `The files of sessions are in ${settings.CHECKPOINT_STORE}. If the installation that was backed up does not run any more, start one instance once with: serve --accept-data-dir`
      )
    }
    const logins = files.filter(({ path }) => path.startsWith('logins/')).length
    if (logins > 0) say(`It contains ${plural(logins, 'OAuth login')}: servers are used with them from now on.`)
    if (files.some(({ path }) => path === 'grants.json')) {
      say('It contains accepted entries (grants.json): servers that were accepted there get their secrets here too.')
    }
    if (files.some(({ path }) => path.startsWith('config/'))) {
      say(
        `mcp.json and the credentials file are in ${join(dataDir, 'restored-config')}: move them to where you need them.`
      )
    }
    return 0
  }
}

function checkKind(store: string, { REDIS_URL }: Settings): void {
  if ((store === 'redis') === Boolean(REDIS_URL)) return
  const advice = store === 'redis' ? 'set REDIS_URL' : 'unset REDIS_URL'
  throw new AppError('invalid', 'backup_mismatch', `This backup is of the ${store} store: ${advice} to restore it.`)
}

async function restoreTo(
  dataDir: string,
  settings: Settings,
  dir: string,
  files: BackupManifest['files']
): Promise<void> {
  const redis = settings.REDIS_URL ? await openRedisRestore(settings) : undefined
  const isRepeated = redis ? redis.unfinished === dataDir : isRestoreUnfinished(dataDir)
  if (!isRepeated) await makeEmptyFolder(dataDir, 'The data folder')
  const lock = lockDataDir(dataDir)
  try {
    await (redis ? redis.begin(dataDir) : markFolder(dataDir))
    if (isRepeated) await removeRestored(dataDir)
    say(`Restoring ${plural(files.length, 'file')} …`)
    for (const file of files.filter(({ path }) => path !== 'redis.jsonl')) {
      const { path } = file
      const to = join(dataDir, path.startsWith('config/') ? `restored-${path}` : path)
      makeFolder(dirname(to))
      await restoreFile(dir, file, to)
    }
    await (redis ? redis.load(join(dir, 'redis.jsonl')) : unmarkFolder(dataDir))
  } catch (error) {
    throw explainNoSpace(error, `There is not enough space in ${dataDir}: free some, and run this command again.`)
  } finally {
    lock.release()
  }
}

async function openRedisRestore({ REDIS_URL: url = '', DEPLOYMENT: deployment }: Settings) {
  const { beginRedisRestore, checkRedisEmpty, loadRedis } = await import('../storage/redis/redis-backup.ts')
  const options = { url, deployment, logger: createLogger('silent') }
  return {
    unfinished: await checkRedisEmpty(options),
    begin: (dataDir: string) => beginRedisRestore(options, dataDir),
    load: (file: string) => loadRedis(options, file)
  }
}
