/** A log is a list: an event's seq is its place in it, so seqs can't have gaps. Each element is the time, a space, the JSON. */
import { script } from './scripts.ts'

export const append = script(`
local session, events, taken = KEYS[1], KEYS[2], KEYS[3]
local epoch, key_count = ARGV[1], tonumber(ARGV[2])
if epoch ~= '' and not owns(session, epoch) then return 'lost' end
local fresh = {}
for i = 3, 2 + key_count do
  if fresh[ARGV[i]] or redis.call('SISMEMBER', taken, ARGV[i]) == 1 then return { ARGV[i] } end
  fresh[ARGV[i]] = true
end
for i = 3, 2 + key_count do redis.call('SADD', taken, ARGV[i]) end
local at = int(clock())
local last = redis.call('LLEN', events)
for i = 3 + key_count, #ARGV do redis.call('RPUSH', events, at .. ' ' .. ARGV[i]) end
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

export const lastSeq = script(`return redis.call('LLEN', KEYS[1])`)

export const remove = script(`redis.call('DEL', KEYS[1], KEYS[2])`)
