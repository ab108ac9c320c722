import { AppError } from '../../lib/errors.ts'
import type { StoreRow } from '../backup/store-row.ts'
import { dumpKeys, type KeyRow, loadKey, removeKeys } from './dump-keys.ts'
import type { RedisClient } from './redis-client.ts'
import { redisKeys } from './redis-keys.ts'
import { encodeId } from './redis-session-store.ts'

const SESSION_KEY = /^\{(.*)\}:(session|events|event-keys|large-values)$/
const FACTS = 'facts:'
/** Events that are sent to Redis at once. */
const PAGE_BYTES = 1024 * 1024

export async function* readRedisRows(client: RedisClient, prefix: string): AsyncGenerator<StoreRow> {
  let events = { key: '', seq: 0 }
  for await (const row of dumpKeys(client, prefix)) {
    if (row.key !== events.key) events = { key: row.key, seq: 0 }
    yield* rowsOfKey(row, events)
  }
}

function* rowsOfKey({ key, values }: KeyRow, events: { seq: number }): Generator<StoreRow> {
  const [, encoded, part] = SESSION_KEY.exec(key) ?? []
  if (encoded !== undefined) yield* sessionRows(decodeURIComponent(encoded), part ?? '', values, events)
  else if (key.startsWith(FACTS)) {
    for (const [name, value] of pairs(values)) yield { kind: 'fact', space: key.slice(FACTS.length), key: name, value }
  } else if (key === 'log-sizes') {
    for (const [id, bytes] of pairs(values)) {
      yield { kind: 'log-size', id: decodeURIComponent(id), bytes: Number(bytes) }
    }
  } else if (key === 'epoch-floor') yield { kind: 'floor', epoch: Number(values[0]) }
  // The index of sessions is built from their records.
  else if (key !== 'sessions') throw unknownKey(key)
}

function* sessionRows(id: string, part: string, values: string[], events: { seq: number }): Generator<StoreRow> {
  if (part === 'session') {
    const { epoch, createdAt, activeAt } = Object.fromEntries(pairs(values))
    yield { kind: 'session', id, epoch: Number(epoch), createdAt: Number(createdAt), activeAt: Number(activeAt) }
  } else if (part === 'event-keys') for (const key of values) yield { kind: 'event-key', id, key }
  else if (part === 'large-values') for (const [hash, value] of pairs(values)) yield { kind: 'large', id, hash, value }
  else {
    for (const item of values) {
      const space = item.indexOf(' ')
      yield { kind: 'event', id, seq: ++events.seq, at: Number(item.slice(0, space)), body: item.slice(space + 1) }
    }
  }
}

/** Replaces all data of the deployment. Events of a session must come in their order, and together. */
export async function writeRedisRows(
  client: RedisClient,
  prefix: string,
  rows: AsyncIterable<StoreRow>
): Promise<void> {
  await removeKeys(client, prefix)
  let page: { key: string; values: string[]; bytes: number } = { key: '', values: [], bytes: 0 }
  const flush = async () => {
    if (page.values.length > 0) await loadKey(client, prefix, { key: page.key, type: 'list', values: page.values })
    page = { key: '', values: [], bytes: 0 }
  }
  for await (const row of rows) {
    if (row.kind === 'event') {
      const key = redisKeys('').events(encodeId(row.id))
      if (page.key !== key || page.bytes > PAGE_BYTES) await flush()
      page.key = key
      page.bytes += row.body.length
      page.values.push(`${row.at} ${row.body}`)
    } else for (const each of keysOf(row)) await loadKey(client, prefix, each)
  }
  await flush()
}

function keysOf(row: Exclude<StoreRow, { kind: 'event' }>): KeyRow[] {
  const keys = redisKeys('')
  if (row.kind === 'floor') return [{ key: keys.epochFloor, type: 'string', values: [String(row.epoch)] }]
  if (row.kind === 'fact') return [{ key: keys.facts(row.space), type: 'hash', values: [row.key, row.value] }]
  const id = encodeId(row.id)
  if (row.kind === 'event-key') return [{ key: keys.eventKeys(id), type: 'set', values: [row.key] }]
  if (row.kind === 'large') return [{ key: keys.largeValues(id), type: 'hash', values: [row.hash, row.value] }]
  if (row.kind === 'log-size') return [{ key: keys.logSizes, type: 'hash', values: [id, String(row.bytes)] }]
  const { epoch, createdAt, activeAt } = row
  const fields = { id, epoch, createdAt, activeAt }
  const values = Object.entries(fields).flatMap(([name, value]) => [name, String(value)])
  return [
    { key: keys.session(id), type: 'hash', values },
    { key: keys.index, type: 'zset', values: [id, '0'] }
  ]
}

function pairs(values: string[]): [string, string][] {
  return values.flatMap((name, at): [string, string][] => (at % 2 === 0 ? [[name, values[at + 1] ?? '']] : []))
}

function unknownKey(key: string): AppError {
  const message = `Redis has a key of this deployment that this version does not know: ${key.slice(0, 100)}. Use the version that wrote it.`
  return new AppError('unavailable', 'store_too_new', message)
}
