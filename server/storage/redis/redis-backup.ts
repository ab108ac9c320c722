import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { AppError } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import { dumpKeys, hasKeys, type KeyRow, loadKey } from './dump-keys.ts'
import { connectRedis } from './redis-client.ts'
import { deploymentPrefix } from './redis-keys.ts'

export interface RedisBackupOptions {
  url: string
  deployment: string
  logger: Logger
}

/** Writes every key of the deployment to a file, one per line, and returns the number of lines. */
export async function dumpRedis({ url, deployment, logger }: RedisBackupOptions, file: string): Promise<number> {
  const client = await connectRedis(url, logger)
  const handle = await open(file, 'wx', 0o600)
  let rows = 0
  try {
    for await (const row of dumpKeys(client, deploymentPrefix(deployment))) {
      await handle.write(`${JSON.stringify(row)}\n`)
      rows += 1
    }
    await handle.sync()
  } finally {
    await handle.close()
    await client.close()
  }
  return rows
}

/** Throws `folder_not_empty` if the deployment already has keys, so that nothing is overwritten. */
export async function checkRedisEmpty({ url, deployment, logger }: RedisBackupOptions): Promise<void> {
  const client = await connectRedis(url, logger)
  try {
    if (!(await hasKeys(client, deploymentPrefix(deployment)))) return
  } finally {
    await client.close()
  }
  const message = `Redis already has data of the deployment "${deployment}": set DEPLOYMENT to another name, or use an empty database.`
  throw new AppError('conflict', 'folder_not_empty', message)
}

export async function loadRedis({ url, deployment, logger }: RedisBackupOptions, file: string): Promise<number> {
  const client = await connectRedis(url, logger)
  let rows = 0
  try {
    for await (const line of createInterface({ input: createReadStream(file), crlfDelay: Number.POSITIVE_INFINITY })) {
      await loadKey(client, deploymentPrefix(deployment), JSON.parse(line) as KeyRow)
      rows += 1
    }
  } finally {
    await client.close()
  }
  return rows
}
