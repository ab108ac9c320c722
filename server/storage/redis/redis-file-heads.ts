import { type FileHeads, MAX_UPLOAD_AGE_MS, type SwapResult } from '../file-heads.ts'
import type { RedisClient } from './redis-client.ts'
import type { RedisKeys } from './redis-keys.ts'
import { encodeId } from './redis-session-store.ts'
import { script, scriptForFullRedis } from './scripts.ts'

const LIST_PAGE = 500

const read = script(`return redis.call('HGET', KEYS[1], 'files')`)

const swap = scriptForFullRedis(`
local key, epoch, known, next = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local since, max_age = tonumber(ARGV[4]), tonumber(ARGV[5])
if not owns(key, epoch) then return 'lost' end
if clock() - since > max_age then return 'late' end
local value = redis.call('HGET', key, 'files') or ''
if value == next then return 'ok' end
if value ~= known then return 'changed' end
redis.call('HSET', key, 'files', next)
return 'ok'
`)

const clear = scriptForFullRedis(`
if not owns(KEYS[1], ARGV[1]) then return 0 end
redis.call('HDEL', KEYS[1], 'files')
return 1
`)

const listPage = script(`
local index = KEYS[1]
local prefix, suffix, after, limit = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local page = {}
for _, id in ipairs(redis.call('ZRANGEBYLEX', index, after, '+', 'LIMIT', 0, limit)) do
  page[#page + 1] = { id, redis.call('HGET', prefix .. id .. suffix, 'files') or '' }
end
return page
`)

const RESULTS: readonly SwapResult[] = ['ok', 'lost', 'changed', 'late']

export function redisFileHeads(client: RedisClient, keys: RedisKeys): FileHeads {
  const key = (sessionId: string) => keys.session(encodeId(sessionId))
  return {
    async read(sessionId) {
      const value = await client.run(read, [key(sessionId)])
      return typeof value === 'string' ? value : null
    },
    async swap(sessionId, { epoch, known, next, since }) {
      const reply = await client.run(swap, [key(sessionId)], [epoch, known ?? '', next, since, MAX_UPLOAD_AGE_MS])
      return RESULTS.find((result) => result === reply) ?? 'lost'
    },
    clear: async (sessionId, epoch) => (await client.run(clear, [key(sessionId)], [epoch])) === 1,
    /** Reads in pages, so that many sessions don't block Redis. */
    async list() {
      const heads = new Map<string, string>()
      for (let after = '-'; ; ) {
        const args = [keys.sessionPrefix, keys.sessionSuffix, after, LIST_PAGE]
        const reply = await client.run(listPage, [keys.index], args)
        const page = (Array.isArray(reply) ? reply : []).map((pair: unknown) => (Array.isArray(pair) ? pair : []))
        for (const [id, value] of page) if (value !== '') heads.set(decodeURIComponent(String(id)), String(value))
        const last = page.at(-1)
        if (!last || page.length < LIST_PAGE) return heads
        after = `(${String(last[0])}`
      }
    }
  }
}
