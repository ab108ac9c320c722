/** Keys from before 0.1.0 had no deployment name. The deployment "default" takes them over in one step. */
import { AppError } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import type { RedisClient } from './redis-client.ts'
import { DEFAULT_DEPLOYMENT, deploymentPrefix } from './redis-keys.ts'
import { script } from './scripts.ts'

const OLD_PREFIX = 'mcpo:'

/**
 * Returns how many instances of an earlier version are still running (if any, nothing is done) and how many keys were renamed. A
 * key that already exists under its new name is left alone.
 */
const migrate = script(`
local old, prefix = KEYS[1], KEYS[2]
if redis.call('EXISTS', old .. 'deployment-id') == 0 then return { 0, 0 } end
local alive = redis.call('ZCOUNT', old .. 'instances', '(' .. int(clock()), '+inf')
if alive > 0 then return { alive, 0 } end
redis.call('DEL', old .. 'socket-stream')
local keys, cursor = {}, '0'
repeat
  local page = redis.call('SCAN', cursor, 'MATCH', old .. '*', 'COUNT', 1000)
  cursor = page[1]
  for _, key in ipairs(page[2]) do keys[#keys + 1] = key end
until cursor == '0'
local renamed = 0
for _, key in ipairs(keys) do
  if redis.call('EXISTS', key) == 1 then renamed = renamed + redis.call('RENAMENX', key, prefix .. key:sub(#old + 1)) end
end
return { 0, renamed }
`)

export async function migrateKeys(client: RedisClient, deployment: string, logger: Logger): Promise<void> {
  if (deployment !== DEFAULT_DEPLOYMENT) return
  const reply = await client.run(migrate, [OLD_PREFIX, deploymentPrefix(deployment)])
  const [alive = 0, renamed = 0] = Array.isArray(reply) ? reply.map(Number) : []
  if (alive > 0) {
    const message = `Redis is still used by ${alive} instances of an earlier version: stop them all, wait ten seconds, then start again.`
    throw new AppError('conflict', 'old_instances', message)
  }
  if (renamed > 0)
    logger.info({ renamed }, `Redis keys of an earlier version now belong to the deployment ${deployment}.`)
}
