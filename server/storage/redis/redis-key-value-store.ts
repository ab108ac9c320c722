import type { Json, KeyValueStore } from '../key-value-store.ts'
import type { RedisClient } from './redis-client.ts'
import type { RedisKeys } from './redis-keys.ts'
import { script } from './scripts.ts'

const get = script(`return redis.call('HGET', KEYS[1], ARGV[1])`)
const add = script(`return redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2])`)
const set = script(`redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])`)
const replace = script(`
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
`)
const remove = script(`redis.call('HDEL', KEYS[1], ARGV[1])`)
const list = script(`return redis.call('HGETALL', KEYS[1])`)

/** One hash per space. */
export function redisKeyValueStore(client: RedisClient, keys: RedisKeys): KeyValueStore {
  return {
    async get(space, key) {
      const reply = await client.run(get, [keys.facts(space)], [key])
      return typeof reply === 'string' ? (JSON.parse(reply) as Json) : null
    },
    add: async (space, key, value) => (await client.run(add, [keys.facts(space)], [key, JSON.stringify(value)])) === 1,
    async set(space, key, value) {
      await client.run(set, [keys.facts(space)], [key, JSON.stringify(value)])
    },
    async replace(space, key, known, value) {
      const texts = [JSON.stringify(known), JSON.stringify(value)]
      return (await client.run(replace, [keys.facts(space)], [key, ...texts])) === 1
    },
    async remove(space, key) {
      await client.run(remove, [keys.facts(space)], [key])
    },
    async list(space) {
      const reply = await client.run(list, [keys.facts(space)])
      const flat = (Array.isArray(reply) ? reply : []).map(String)
      return flat.flatMap((key, at) => (at % 2 ? [] : [{ key, value: JSON.parse(flat[at + 1] ?? 'null') as Json }]))
    }
  }
}
