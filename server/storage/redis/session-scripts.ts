/** One script per operation. A session is a hash; '' stands for null. Each script's first lines name its KEYS and ARGV. */
import { script, scriptForFullRedis } from './scripts.ts'

export const now = script(`return int(clock())`)

export const deploymentId = scriptForFullRedis(`
local key, proposal = KEYS[1], ARGV[1]
redis.call('SET', key, proposal, 'NX')
return redis.call('GET', key)
`)

export const origin = scriptForFullRedis(`
local key, proposal = KEYS[1], ARGV[1]
redis.call('SET', key, proposal .. ' ' .. int(clock()), 'NX')
return redis.call('GET', key)
`)

export const heartbeat = scriptForFullRedis(`
local instances, ended = KEYS[1], KEYS[2]
local instance, ttl = ARGV[1], tonumber(ARGV[2])
redis.call('ZADD', instances, int(clock() + ttl), instance)
redis.call('ZREM', ended, instance)
`)

/**
 * Remembers instances as ended when their heartbeat has expired. The store knows nothing about instances that it has never seen.
 */
export const instances = scriptForFullRedis(`
local key, ended, kept = KEYS[1], KEYS[2], tonumber(ARGV[1])
local now = clock()
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', key, '-inf', int(now))) do redis.call('ZADD', ended, int(now), gone) end
redis.call('ZREMRANGEBYSCORE', key, '-inf', int(now))
redis.call('ZREMRANGEBYSCORE', ended, '-inf', int(now - kept))
return { redis.call('ZRANGE', key, 0, -1), redis.call('ZRANGE', ended, 0, -1) }
`)

export const signOff = scriptForFullRedis(`
local instances, index, ended, forks = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local instance, prefix, suffix = ARGV[1], ARGV[2], ARGV[3]
redis.call('ZREM', instances, instance)
redis.call('HDEL', forks, instance)
redis.call('ZADD', ended, int(clock()), instance)
for _, id in ipairs(redis.call('ZRANGE', index, 0, -1)) do
  local key = prefix .. id .. suffix
  if redis.call('HGET', key, 'holder') == instance then
    redis.call('HSET', key, 'holder', '', 'leaseUntil', '0', 'busy', '0')
  end
end
`)

export const acquire = scriptForFullRedis(`
local key, index, live_index, floor_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, holder, lease = ARGV[1], ARGV[2], tonumber(ARGV[3])
local now = clock()
local s = redis.call('HMGET', key, 'epoch', 'holder', 'leaseUntil', 'busy', 'live')
if not s[1] then
  redis.call('HSET', key, 'id', id, 'epoch', int(next_epoch(0, floor_key, now)), 'holder', holder,
    'leaseUntil', int(now + lease), 'busy', '1', 'live', '0', 'containerId', '', 'createdAt', int(now), 'activeAt', int(now))
  redis.call('ZADD', index, 0, id)
  return record(key)
end
local held = s[2] ~= '' and tonumber(s[3]) > now
if held and s[4] == '1' and s[2] ~= holder then
  return { s[2], int(tonumber(s[3]) - now) }
end
if s[2] ~= holder then
  redis.call('HSET', key, 'epoch', int(next_epoch(tonumber(s[1]), floor_key, now)), 'holder', holder)
end
redis.call('HSET', key, 'leaseUntil', int(now + lease), 'busy', '1', 'activeAt', int(now))
if s[5] == '1' then redis.call('ZADD', live_index, int(now), id) end
return record(key)
`)

export const touch = scriptForFullRedis(`
local key, live_index = KEYS[1], KEYS[2]
local id, epoch, lease, busy, activity = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
if not owns(key, epoch) or redis.call('HGET', key, 'holder') == '' then return 0 end
local now = clock()
redis.call('HSET', key, 'leaseUntil', int(now + lease), 'busy', busy)
if activity == '1' then
  redis.call('HSET', key, 'activeAt', int(now))
  redis.call('ZADD', live_index, 'XX', int(now), id)
end
return 1
`)

export const visit = scriptForFullRedis(`
local key, live_index, id = KEYS[1], KEYS[2], ARGV[1]
if redis.call('EXISTS', key) == 0 then return end
local now = int(clock())
redis.call('HSET', key, 'activeAt', now)
redis.call('ZADD', live_index, 'XX', now, id)
`)

export const release = scriptForFullRedis(`
local key, epoch = KEYS[1], ARGV[1]
if owns(key, epoch) then redis.call('HSET', key, 'holder', '', 'leaseUntil', '0', 'busy', '0') end
`)

/** The forks of the living instances except one. Counts of instances that are gone are removed. */
const COUNT_FORKS = `
local function count_forks(forks, instances, except)
  local sum = 0
  local all = redis.call('HGETALL', forks)
  for i = 1, #all, 2 do
    local until_ms = tonumber(redis.call('ZSCORE', instances, all[i]) or '0')
    if all[i] ~= except and until_ms > clock() then sum = sum + tonumber(all[i + 1]) end
    if all[i] ~= except and until_ms <= clock() then redis.call('HDEL', forks, all[i]) end
  end
  return sum
end
`

export const reserveForks = scriptForFullRedis(`
${COUNT_FORKS}
local forks, instances, live_index = KEYS[1], KEYS[2], KEYS[3]
local instance, count, max_live = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local known = tonumber(redis.call('HGET', forks, instance) or '0')
if count > known and redis.call('ZCARD', live_index) + count_forks(forks, instances, instance) + count > max_live then return 0 end
if count == 0 then redis.call('HDEL', forks, instance) else redis.call('HSET', forks, instance, int(count)) end
return 1
`)

export const reserve = scriptForFullRedis(`
${COUNT_FORKS}
local key, live_index, forks, instances = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, epoch, max_live = ARGV[1], ARGV[2], tonumber(ARGV[3])
if not owns(key, epoch) then return 'lost' end
if redis.call('HGET', key, 'live') == '1' then return 'ok' end
if redis.call('ZCARD', live_index) + count_forks(forks, instances, '') >= max_live then return 'full' end
redis.call('HSET', key, 'live', '1')
redis.call('ZADD', live_index, redis.call('HGET', key, 'activeAt'), id)
return 'ok'
`)

export const bind = scriptForFullRedis(`
local key, live_index = KEYS[1], KEYS[2]
local id, epoch, container = ARGV[1], ARGV[2], ARGV[3]
if not owns(key, epoch) then return 0 end
redis.call('HSET', key, 'containerId', container, 'live', '1')
redis.call('ZADD', live_index, redis.call('HGET', key, 'activeAt'), id)
return 1
`)

export const unbind = scriptForFullRedis(`
local key, live_index = KEYS[1], KEYS[2]
local id, epoch = ARGV[1], ARGV[2]
if not owns(key, epoch) then return 0 end
redis.call('HSET', key, 'containerId', '', 'live', '0')
redis.call('ZREM', live_index, id)
return 1
`)

export const takeIdle = scriptForFullRedis(`
local live_index, floor_key = KEYS[1], KEYS[2]
local prefix, suffix, holder = ARGV[1], ARGV[2], ARGV[3]
local idle, lease, limit = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local now = clock()
local taken = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', live_index, '-inf', int(now - idle))) do
  if #taken >= limit then break end
  local key = prefix .. id .. suffix
  local s = redis.call('HMGET', key, 'epoch', 'holder', 'leaseUntil', 'busy')
  local free = s[1] and (tonumber(s[3]) <= now or (s[4] == '0' and (s[2] == '' or s[2] == holder)))
  if free then
    redis.call('HSET', key, 'epoch', int(next_epoch(tonumber(s[1]), floor_key, now)), 'holder', holder,
      'leaseUntil', int(now + lease), 'busy', '1')
    taken[#taken + 1] = record(key)
  end
end
return taken
`)

export const get = script(`return record(KEYS[1])`)

export const listPage = script(`
local index = KEYS[1]
local prefix, suffix, after, limit = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local page = {}
for _, id in ipairs(redis.call('ZRANGEBYLEX', index, after, '+', 'LIMIT', 0, limit)) do
  page[#page + 1] = record(prefix .. id .. suffix)
end
return page
`)

export const listLive = script(`
local live_index = KEYS[1]
local prefix, suffix = ARGV[1], ARGV[2]
local found = {}
for _, id in ipairs(redis.call('ZRANGE', live_index, 0, -1)) do
  local key = prefix .. id .. suffix
  if redis.call('EXISTS', key) == 1 then found[#found + 1] = record(key) end
end
return found
`)

export const size = script(`return redis.call('ZCARD', KEYS[1])`)

/**
 * A removed session's epoch becomes the lower limit for new ones: a session that comes back in the same millisecond must not
 * repeat it.
 */
export const remove = script(`
local key, index, live_index, floor_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, epoch = ARGV[1], ARGV[2]
if not owns(key, epoch) then return 0 end
redis.call('DEL', key)
redis.call('ZREM', index, id)
redis.call('ZREM', live_index, id)
local floor = tonumber(redis.call('GET', floor_key) or '0')
redis.call('SET', floor_key, int(math.max(floor, tonumber(epoch))))
return 1
`)
