/** A Lua script that Redis runs as one step. Redis identifies it by `sha` once it has seen it. */
import { createHash } from 'node:crypto'

export interface Script {
  readonly lua: string
  readonly sha: string
}

/** TIME makes Redis the only clock for all instances. %.0f is needed because Lua would write a large number as 1.7e+12. */
const PRELUDE = `
local function clock()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end
local function int(n) return string.format('%.0f', n) end
local function next_epoch(previous, floor_key, now)
  local floor = tonumber(redis.call('GET', floor_key) or '0')
  return math.max(previous + 1, floor + 1, now)
end
local function record(key)
  return redis.call('HMGET', key, 'id', 'epoch', 'holder', 'leaseUntil', 'busy', 'live', 'containerId', 'createdAt', 'activeAt')
end
local function owns(key, epoch)
  return redis.call('HGET', key, 'epoch') == epoch
end
`

export function script(body: string): Script {
  const lua = PRELUDE + body
  return { lua, sha: createHash('sha1').update(lua).digest('hex') }
}

/**
 * For scripts that must also work when Redis is full: leases, and the removal of sessions, which frees memory. Redis refuses a
 * script's first write if it may need memory, but none after a write that frees memory.
 */
export function scriptForFullRedis(body: string): Script {
  return script(`redis.call('DEL', KEYS[1] .. ':none')\n${body}`)
}
