/**
 * Writes the keys of one deployment as lines of JSON and reads them back, for backups. It stores only types and values, so it
 * works across versions of Redis.
 */
import { AppError } from '../../lib/errors.ts'
import type { RedisClient } from './redis-client.ts'
import { LARGE_VALUES } from './redis-keys.ts'
import { MARKER } from './restore-marker.ts'
import { script } from './scripts.ts'

export interface KeyRow {
  /** Without the deployment's prefix. */
  key: string
  type: 'string' | 'hash' | 'list' | 'set' | 'zset'
  /** A long list, or a hash with long values, is split: the rows of one key follow each other. */
  values: string[]
}

const PAGE = 500
/** Keys that belong to running instances or to a restore, and not to the stored data. */
const SKIPPED_KEYS = new Set([
  ...['deployment-id', 'origin', 'instances', 'ended-instances', 'forks', 'live', 'socket-stream'],
  MARKER
])

const scan = script(`
local reply = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', 1000)
return { reply[1], reply[2] }
`)
const read = script(`
local key, from, to = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local kind = redis.call('TYPE', key).ok
if kind == 'string' then return { kind, { redis.call('GET', key) } } end
if kind == 'hash' then return { kind, redis.call('HGETALL', key) } end
if kind == 'list' then return { kind, redis.call('LRANGE', key, from, to) } end
if kind == 'set' then return { kind, redis.call('SMEMBERS', key), redis.call('LLEN', (key:gsub('event%-keys$', 'events'))) } end
if kind == 'zset' then return { kind, redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') } end
return { kind, {} }
`)
const fields = script(`return redis.call('HKEYS', KEYS[1])`)
const value = script(`return redis.call('HGET', KEYS[1], ARGV[1])`)
const write = script(`
local key, kind = KEYS[1], ARGV[1]
local commands = { string = 'SET', hash = 'HSET', list = 'RPUSH', set = 'SADD' }
if kind == 'zset' then
  for i = 2, #ARGV, 2 do redis.call('ZADD', key, ARGV[i + 1], ARGV[i]) end
  return 1
end
redis.call(commands[kind], key, unpack(ARGV, 2))
return 1
`)
const remove = script(`return redis.call('DEL', KEYS[1])`)
/** The copy has no containers and no owners: the original's sandboxes do not belong to it. */
const unbind = script(`
redis.call('HSET', KEYS[1], 'holder', '', 'leaseUntil', '0', 'busy', '0', 'live', '0', 'containerId', '')
`)

/**
 * A session's log only grows. Its event keys come first and are read together with its length, so both belong to the same moment
 * even if others write meanwhile.
 */
export async function* dumpKeys(client: RedisClient, prefix: string): AsyncGenerator<KeyRow> {
  const lengths = new Map<string, number>()
  for (const name of await storedKeys(client, prefix)) {
    const key = name.slice(prefix.length)
    if (key.endsWith(LARGE_VALUES)) {
      yield* largeValues(client, name, key)
      continue
    }
    for (let from = 0; ; from += PAGE) {
      const to = Math.min(from + PAGE, lengths.get(name) ?? Number.MAX_SAFE_INTEGER) - 1
      if (to < from) break
      const reply = await client.run(read, [name], [from, to])
      const [type, list, length] = Array.isArray(reply) ? reply : []
      if (type === 'set') lengths.set(name.replace(/event-keys$/, 'events'), Number(length))
      const values = Array.isArray(list) ? list.map(String) : []
      // The key is gone, or this is the end of a list.
      if (values.length === 0) break
      yield { key, type: asType(type), values }
      if (type !== 'list' || values.length < PAGE) break
    }
  }
}

/** One at a time: all values of a session together may be too long for one answer of Redis, and for one line of the backup. */
async function* largeValues(client: RedisClient, name: string, key: string): AsyncGenerator<KeyRow> {
  const reply = await client.run(fields, [name])
  for (const field of Array.isArray(reply) ? reply.map(String) : []) {
    const text = await client.run(value, [name], [field])
    if (typeof text === 'string') yield { key, type: 'hash', values: [field, text] }
  }
}

export async function hasKeys(client: RedisClient, prefix: string): Promise<boolean> {
  return (await storedKeys(client, prefix)).length > 0
}

/** Removes the stored data of a deployment. */
export async function removeKeys(client: RedisClient, prefix: string): Promise<void> {
  for (const name of await storedKeys(client, prefix)) await client.run(remove, [name])
}

export async function loadKey(client: RedisClient, prefix: string, { key, type, values }: KeyRow): Promise<void> {
  const size = type === 'hash' || type === 'zset' ? 2 * PAGE : PAGE
  for (let at = 0; at < values.length; at += size) {
    await client.run(write, [prefix + key], [asType(type), ...values.slice(at, at + size)])
  }
  if (type === 'hash' && /^\{.*\}:session$/.test(key)) await client.run(unbind, [prefix + key])
}

async function storedKeys(client: RedisClient, prefix: string): Promise<string[]> {
  const found = new Set<string>()
  let cursor = '0'
  do {
    const reply = await client.run(scan, [], [cursor, `${prefix}*`])
    const [next, names] = Array.isArray(reply) ? reply : []
    cursor = String(next)
    for (const name of Array.isArray(names) ? names : []) found.add(String(name))
  } while (cursor !== '0')
  return [...found].filter((name) => !SKIPPED_KEYS.has(name.slice(prefix.length))).toSorted()
}

function asType(type: unknown): KeyRow['type'] {
  const known = (['string', 'hash', 'list', 'set', 'zset'] as const).find((each) => each === type)
  if (known) return known
  const message = `The backup has a Redis key of the type "${String(type).slice(0, 20)}".`
  throw new AppError('invalid', 'backup_damaged', message)
}
