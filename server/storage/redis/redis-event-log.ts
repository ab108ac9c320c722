import { AppError } from '../../lib/errors.ts'
import {
  type DecodedEvent,
  decodeEvent,
  encodeEvents,
  fill,
  fitting,
  hashesOf,
  keysOf,
  PAGE_BYTES,
  READ_BATCH,
  readRange
} from '../event-encoding.ts'
import type { EventLog, NewEvent, StoredEvent } from '../event-log.ts'
import { eventExists, leaseLost } from '../store-errors.ts'
import * as scripts from './event-scripts.ts'
import type { RedisClient } from './redis-client.ts'
import type { RedisKeys } from './redis-keys.ts'
import { encodeId } from './redis-session-store.ts'

const IDS_AT_ONCE = 500

export function redisEventLog(client: RedisClient, keys: RedisKeys): EventLog {
  return {
    append: (sessionId, events, options = {}) => append(client, keys, sessionId, events, options.epoch),
    async read(sessionId, options) {
      const id = encodeId(sessionId)
      const { after, limit, bareUntil } = readRange(options)
      const reply = await client.run(scripts.read, [keys.events(id)], [after, limit, READ_BATCH, PAGE_BYTES])
      const items: unknown[] = Array.isArray(reply) ? reply : []
      const page = items.map((item, i) => decodeItem(after + i + 1, String(item)))
      const shown = fitting(page, bareUntil)
      return fill(shown, await largeValues(client, keys.largeValues(id), hashesOf(shown, bareUntil)), bareUntil)
    },
    async lastSeq(sessionId) {
      return Number(await client.run(scripts.lastSeq, [keys.events(encodeId(sessionId))]))
    },
    async bytes(sessionIds) {
      if (!sessionIds) return Number(await client.run(scripts.bytes, [keys.logSizes]))
      let sum = 0
      for (let i = 0; i < sessionIds.length; i += IDS_AT_ONCE) {
        const ids = sessionIds.slice(i, i + IDS_AT_ONCE).map(encodeId)
        sum += Number(await client.run(scripts.bytes, [keys.logSizes], ids))
      }
      return sum
    },
    async remove(sessionId, epoch) {
      const id = encodeId(sessionId)
      const names = [keys.events(id), keys.eventKeys(id), keys.logSizes, keys.largeValues(id), keys.session(id)]
      if ((await client.run(scripts.remove, names, [id, epoch ?? ''])) === 'lost') throw leaseLost()
    }
  }
}

async function append(
  client: RedisClient,
  keys: RedisKeys,
  sessionId: string,
  events: NewEvent[],
  epoch: number | undefined
): Promise<StoredEvent[]> {
  const id = encodeId(sessionId)
  const { bodies, large } = encodeEvents(events)
  const unique = keysOf(events)
  const names = [keys.session(id), keys.events(id), keys.eventKeys(id), keys.logSizes, keys.largeValues(id)]
  const counts = [unique.length, large.size]
  const values = [id, epoch ?? '', ...counts, ...unique, ...[...large].flat(), ...bodies]
  const reply = await client.run(scripts.append, names, values)
  if (reply === 'lost') throw leaseLost()
  const parts: unknown[] = Array.isArray(reply) ? reply : []
  if (parts.length === 1) throw eventExists(String(parts[0]))
  const [last, at] = parts.map(Number)
  if (last === undefined || at === undefined) {
    throw new AppError('internal', 'store_failed', 'Redis sent an invalid response to an append.')
  }
  return fill(
    bodies.map((body, i) => decodeEvent(last + i + 1, at, body)),
    large
  )
}

/** One by one: each may have megabytes, and a script keeps all other clients of Redis waiting. */
async function largeValues(client: RedisClient, name: string, hashes: string[]): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  for (const hash of new Set(hashes)) {
    const value = await client.run(scripts.largeValue, [name], [hash])
    if (typeof value === 'string') found.set(hash, value)
  }
  return found
}

function decodeItem(seq: number, item: string): DecodedEvent {
  const space = item.indexOf(' ')
  return decodeEvent(seq, Number(item.slice(0, space)), item.slice(space + 1))
}
