import { isAppError } from '../../lib/errors.ts'
import type { RedisClient } from './redis-client.ts'
import { script } from './scripts.ts'

const info = script(`return redis.call('INFO', 'memory') .. redis.call('INFO', 'persistence')`)

/** Finds settings of this Redis with which it could lose what it has acknowledged. A Redis that does not tell is not judged. */
export async function findRedisRisks(client: RedisClient): Promise<string[]> {
  try {
    const text = String(await client.run(info, []))
    const value = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(text)?.[1]
    const policy = value('maxmemory_policy')
    const risks: string[] = []
    if (policy !== undefined && policy !== 'noeviction')
      risks.push(`Redis deletes conversations when it is full (maxmemory-policy ${policy}): set noeviction.`)
    if (value('aof_enabled') === '0')
      risks.push('Redis forgets what it got since its last snapshot when it crashes: set appendonly yes.')
    return risks
  } catch (error) {
    if (isAppError(error, 'store_unavailable')) throw error
    return []
  }
}
