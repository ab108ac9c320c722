import { AppError } from '../../lib/errors.ts'
import { decodeEvent, encodeEvents, keysOf, PAGE_BYTES, READ_BATCH, readRange } from '../event-encoding.ts'
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
      const { after, limit } = readRange(options)
      const reply = await client.run(scripts.read, [keys.events(id)], [after, limit, READ_BATCH, PAGE_BYTES])
      return (Array.isArray(reply) ? reply : []).map((item, i) => decodeItem(after + i + 1, String(item)))
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
    async remove(sessionId) {
      const id = encodeId(sessionId)
      await client.run(scripts.remove, [keys.events(id), keys.eventKeys(id), keys.logSizes], [id])
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
  const bodies = encodeEvents(events)
  const unique = keysOf(events)
  const names = [keys.session(id), keys.events(id), keys.eventKeys(id), keys.logSizes]
  const reply = await client.run(scripts.append, names, [id, epoch ?? '', unique.length, ...unique, ...bodies])
  if (reply === 'lost') throw leaseLost()
  const parts: unknown[] = Array.isArray(reply) ? reply : []
  if (parts.length === 1) throw eventExists(String(parts[0]))
  const [last, at] = parts.map(Number)
  if (last === undefined || at === undefined) {
    throw new AppError('internal', 'store_failed', 'Redis sent an invalid response to an append.')
  }
  return bodies.map((body, i) => decodeEvent(last + i + 1, at, body))
}

function decodeItem(seq: number, item: string): StoredEvent {
  const space = item.indexOf(' ')
  return decodeEvent(seq, Number(item.slice(0, space)), item.slice(space + 1))
}
