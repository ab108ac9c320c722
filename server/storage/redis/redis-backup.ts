import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { AppError } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import { dumpKeys, hasKeys, type KeyRow, loadKey, removeKeys } from './dump-keys.ts'
import { connectRedis, type RedisClient } from './redis-client.ts'
import { deploymentPrefix } from './redis-keys.ts'
import { markRestore, unfinishedRestore, unmarkRestore } from './restore-marker.ts'

export interface RedisBackupOptions {
  url: string
  deployment: string
  logger: Logger
}

/** Writes every key of the deployment to a file, one per line. */
export function dumpRedis(options: RedisBackupOptions, file: string): Promise<void> {
  return connected(options, async (client, prefix) => {
    const handle = await open(file, 'wx', 0o600)
    try {
      for await (const row of dumpKeys(client, prefix)) await handle.write(`${JSON.stringify(row)}\n`)
      await handle.sync()
    } finally {
      await handle.close()
    }
  })
}

/** Returns the data folder of a restore that was interrupted. Otherwise throws `folder_not_empty` if the deployment has keys. */
export function checkRedisEmpty(options: RedisBackupOptions): Promise<string | undefined> {
  const { deployment } = options
  return connected(options, async (client, prefix) => {
    const dataDir = await unfinishedRestore(client, prefix)
    if (dataDir !== undefined || !(await hasKeys(client, prefix))) return dataDir
    const message = `Redis already has data of the deployment "${deployment}": set DEPLOYMENT to another name, or use an empty database.`
    throw new AppError('conflict', 'folder_not_empty', message)
  })
}

/** From now on the deployment is not served, until `loadRedis` has loaded everything. Removes what an interrupted restore has loaded. */
export function beginRedisRestore(options: RedisBackupOptions, dataDir: string): Promise<void> {
  return connected(options, async (client, prefix) => {
    await markRestore(client, prefix, dataDir)
    await removeKeys(client, prefix)
  })
}

export function loadRedis(options: RedisBackupOptions, file: string): Promise<void> {
  return connected(options, async (client, prefix) => {
    const lines = createInterface({ input: createReadStream(file), crlfDelay: Number.POSITIVE_INFINITY })
    for await (const line of lines) await loadKey(client, prefix, JSON.parse(line) as KeyRow)
    await unmarkRestore(client, prefix)
  })
}

async function connected<T>(
  { url, deployment, logger }: RedisBackupOptions,
  job: (client: RedisClient, prefix: string) => Promise<T>
): Promise<T> {
  const client = await connectRedis(url, logger)
  try {
    return await job(client, deploymentPrefix(deployment))
  } finally {
    await client.close()
  }
}
