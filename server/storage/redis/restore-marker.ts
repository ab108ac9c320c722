/** The key that a restore sets first and removes last. Its value is the data folder of the restore. */
import type { RedisClient } from './redis-client.ts'
import { script } from './scripts.ts'

export const MARKER = 'unfinished-restore'

const read = script(`return redis.call('GET', KEYS[1])`)
const set = script(`redis.call('SET', KEYS[1], ARGV[1])`)
const remove = script(`redis.call('DEL', KEYS[1])`)

export async function unfinishedRestore(client: RedisClient, prefix: string): Promise<string | undefined> {
  const dataDir = await client.run(read, [prefix + MARKER])
  return typeof dataDir === 'string' ? dataDir : undefined
}

export async function markRestore(client: RedisClient, prefix: string, dataDir: string): Promise<void> {
  await client.run(set, [prefix + MARKER], [dataDir])
}

export async function unmarkRestore(client: RedisClient, prefix: string): Promise<void> {
  await client.run(remove, [prefix + MARKER])
}
