/**
 * A log is a list, and an event's seq is its position, so there can be no gaps. Each element is the time, a space and the JSON.
 */
import { script } from './scripts.ts'

export const append = script(`
local session, events, taken, sizes, large = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, epoch, key_count, large_count = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local first_large = 5 + key_count
local first_event = first_large + 2 * large_count
if epoch ~= '' and not owns(session, epoch) then return 'lost' end
local fresh = {}
for i = 5, first_large - 1 do
  if fresh[ARGV[i]] or redis.call('SISMEMBER', taken, ARGV[i]) == 1 then return { ARGV[i] } end
  fresh[ARGV[i]] = true
end
for i = 5, first_large - 1 do redis.call('SADD', taken, ARGV[i]) end
local at = int(clock())
local last = redis.call('LLEN', events)
local bytes = 0
for i = first_large, first_event - 1, 2 do
  if redis.call('HSETNX', large, ARGV[i], ARGV[i + 1]) == 1 then bytes = bytes + #ARGV[i + 1] end
end
for i = first_event, #ARGV do
  bytes = bytes + #ARGV[i]
  redis.call('RPUSH', events, at .. ' ' .. ARGV[i])
end
redis.call('HINCRBY', sizes, id, bytes)
return { last, at }
`)

export const read = script(`
local events = KEYS[1]
local from, limit, at_once, max_bytes = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local page, bytes = {}, 0
while #page < limit and bytes < max_bytes do
  local first = from + #page
  local part = redis.call('LRANGE', events, first, first + math.min(at_once, limit - #page) - 1)
  for _, item in ipairs(part) do
    page[#page + 1] = item
    bytes = bytes + #item
  end
  if #part < at_once then break end
end
return page
`)

export const largeValue = script(`return redis.call('HGET', KEYS[1], ARGV[1])`)

export const lastSeq = script(`return redis.call('LLEN', KEYS[1])`)

/** Without ids, sums up all sessions. */
export const bytes = script(`
local sizes = #ARGV == 0 and redis.call('HVALS', KEYS[1]) or redis.call('HMGET', KEYS[1], unpack(ARGV))
local sum = 0
for _, size in ipairs(sizes) do sum = sum + (tonumber(size or '0') or 0) end
return int(sum)
`)

export const remove = script(`
if ARGV[2] ~= '' and not owns(KEYS[5], ARGV[2]) then return 'lost' end
redis.call('DEL', KEYS[1], KEYS[2], KEYS[4])
redis.call('HDEL', KEYS[3], ARGV[1])
`)
