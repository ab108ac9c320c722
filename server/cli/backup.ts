/** `backup` copies all stored data while servers run. It prints what it leaves out without `--with-secrets`. */

import { existsSync } from 'node:fs'
import { open, readdir, rm, rmdir, stat } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { dataPaths } from '../app/data-paths.ts'
import { findWrongFolder, openStore } from '../app/open-store.ts'
import { grantsFile } from '../catalog/grants.ts'
import type { Settings } from '../config/settings.ts'
import { userDefaults } from '../config/user-folders.ts'
import { AppError } from '../lib/errors.ts'
import { packageVersion } from '../lib/files/package-version.ts'
import { createLogger } from '../lib/logger.ts'
import { plural } from '../lib/plural.ts'
import { BackupFolder, explainNoSpace, makeEmptyFolder } from '../storage/backup/backup-folder.ts'
import { copyDatabase } from '../storage/embedded/copy-database.ts'
import { copyCheckpoints } from '../storage/migrate/copy-checkpoints.ts'
import type { Command } from './command.ts'
import { say } from './command.ts'

const SAY_EVERY_MS = 2000
const TAIL_BYTES = 64 * 1024

export const backupCommand: Command = {
  name: 'backup',
  summary: 'copy conversations, files and audit log to a new folder; servers can keep running',
  mainSettings: ['DATA_DIR', 'REDIS_URL', 'DEPLOYMENT', 'MCP_CONFIG', 'CREDENTIALS_FILE'],
  // Outside of an installation, use the user's own folder, as `audit` and `doctor` do.
  defaults: (env) => (existsSync('mcp.json') || existsSync('data/store.db') ? {} : userDefaults(env)),
  flags: {
    to: { type: 'string', help: 'the folder to create; it must be empty or not exist' },
    'with-secrets': { type: 'boolean', help: 'also copy mcp.json, the credentials file and OAuth logins' }
  },
  async run(settings, { flags }) {
    const dir = typeof flags.to === 'string' ? resolve(flags.to) : defaultFolder()
    const { root: dataDir } = dataPaths(settings.DATA_DIR)
    if (!settings.REDIS_URL && !existsSync(join(dataDir, 'store.db'))) {
      throw new AppError(
        'not-found',
        'nothing_to_back_up',
        `There is no store in ${dataDir}: name the data folder with --data-dir.`
      )
    }
    await refuseWrongFolder(settings)
    const isNew = !existsSync(dir)
    await makeEmptyFolder(dir, 'The folder')
    const backup = new BackupFolder(dir)
    const withSecrets = flags['with-secrets'] === true
    const restless = await copyAll(settings, backup, withSecrets).catch(async (error: unknown) => {
      for (const name of await readdir(dir)) await rm(join(dir, name), { recursive: true })
      if (isNew) await rmdir(dir)
      const message = `There is not enough space for the backup in ${dir}: free some, or choose a folder on another disk with --to. The incomplete backup was removed.`
      throw explainNoSpace(error, message)
    })
    say(
      `${plural(backup.count, 'file')} ${backup.count === 1 ? 'is' : 'are'} in ${dir}. Restore them with: mcp-orchestrator restore ${dir} --data-dir NEW-FOLDER`
    )
    if (!withSecrets) say('Not copied: mcp.json, the credentials file, OAuth logins (--with-secrets copies them).')
    if (settings.CHECKPOINT_STORE) {
      say(`Not copied: the files of sessions in ${settings.CHECKPOINT_STORE}. Copy the bucket too, after this.`)
    }
    if (restless.length === 0) return 0
    say(`Skipped the files of ${plural(restless.length, 'session')}, which kept changing: try again later.`)
    return 1
  }
}

/** Returns the sessions whose files kept changing. */
async function copyAll(settings: Settings, backup: BackupFolder, withSecrets: boolean): Promise<string[]> {
  const { root: dataDir, checkpoints, audit } = dataPaths(settings.DATA_DIR)
  say(`Copying the ${settings.REDIS_URL ? 'keys in Redis' : 'database'} …`)
  await copyStore(settings, dataDir, backup)
  const restless = await copyCheckpoints(checkpoints, backup, everyFew())
  await copyAudit(audit, backup)
  if (withSecrets) await copySecrets(settings, dataDir, backup)
  await backup.finish(settings.REDIS_URL ? 'redis' : 'embedded', packageVersion())
  return restless
}

/** A backup without the files of the sessions would be noticed only when it is restored. */
async function refuseWrongFolder(settings: Settings): Promise<void> {
  if (!settings.REDIS_URL) return
  const logger = createLogger('silent')
  const store = await openStore(settings, logger)
  try {
    const problem = await findWrongFolder(settings, store, logger)
    if (problem === undefined) return
    const advice = 'Name the data folder that the instances share with --data-dir.'
    throw new AppError('conflict', 'wrong_data_dir', `${problem} ${advice}`)
  } finally {
    await store.close()
  }
}

function defaultFolder(): string {
  return resolve(`mcp-orchestrator-backup-${new Date().toISOString().replaceAll(/[:.]/g, '-')}`)
}

function everyFew(): (done: number, all: number) => void {
  let saidAt = 0
  return (done, all) => {
    if (done < all && performance.now() - saidAt < SAY_EVERY_MS) return
    saidAt = performance.now()
    say(`Files of ${done} of ${plural(all, 'session')} copied.`)
  }
}

async function copyStore(settings: Settings, dataDir: string, backup: BackupFolder): Promise<void> {
  const name = settings.REDIS_URL ? 'redis.jsonl' : 'store.db'
  const to = await backup.place(name)
  if (settings.REDIS_URL) {
    const { dumpRedis } = await import('../storage/redis/redis-backup.ts')
    await dumpRedis({ url: settings.REDIS_URL, deployment: settings.DEPLOYMENT, logger: createLogger('silent') }, to)
  } else copyDatabase(dataDir, to)
  await backup.add(name)
}

/** Copies up to the last complete line, because the next one may be half written. */
async function copyAudit(dir: string, backup: BackupFolder): Promise<void> {
  for (const name of await readdir(dir).catch(() => [])) {
    const from = join(dir, name)
    if (!(await stat(from)).isFile()) continue
    await backup.copy(from, `audit/${name}`, name.endsWith('.jsonl') ? await wholeLines(from) : undefined)
  }
}

async function wholeLines(file: string): Promise<number> {
  const handle = await open(file)
  try {
    const { size } = await handle.stat()
    const from = Math.max(0, size - TAIL_BYTES)
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(size - from), 0, size - from, from)
    const end = buffer.subarray(0, bytesRead).lastIndexOf(10)
    return end < 0 ? size : from + end + 1
  } finally {
    await handle.close()
  }
}

async function copySecrets(settings: Settings, dataDir: string, backup: BackupFolder): Promise<void> {
  const grants = grantsFile(settings)
  if (existsSync(grants)) await backup.copy(grants, 'grants.json')
  const { logins } = dataPaths(dataDir)
  for (const name of await readdir(logins).catch(() => [])) {
    await backup.copy(join(logins, name), `logins/${name}`)
  }
  for (const file of [settings.MCP_CONFIG, settings.CREDENTIALS_FILE]) {
    if (file !== undefined && existsSync(file)) await backup.copy(resolve(file), `config/${basename(file)}`)
  }
}
