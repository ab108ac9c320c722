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
import type { EventLog, NewEvent, ReadOptions, StoredEvent } from '../event-log.ts'
import { validSessionId } from '../session-id.ts'
import { eventExists, leaseLost } from '../store-errors.ts'
import type { Database } from './database.ts'

const ADD_BYTES = `INSERT INTO log_sizes VALUES (?, ?)
  ON CONFLICT (session_id) DO UPDATE SET bytes = bytes + excluded.bytes`

export function sqliteEventLog(db: Database): EventLog {
  return {
    append: async (sessionId, events, options = {}) => append(db, sessionId, events, options.epoch),
    read: async (sessionId, options) => readPage(db, validSessionId(sessionId), readRange(options)),
    lastSeq: async (sessionId) => lastSeq(db, sessionId),
    bytes: async (sessionIds) => {
      const all = 'SELECT SUM(bytes) AS bytes FROM log_sizes'
      if (!sessionIds) return Number(db.get(all)?.bytes ?? 0)
      const some = `${all} WHERE session_id IN (SELECT value FROM json_each(?))`
      return Number(db.get(some, JSON.stringify(sessionIds))?.bytes ?? 0)
    },
    remove: async (sessionId, epoch) => {
      db.transaction(() => {
        if (epoch !== undefined) assertEpoch(db, sessionId, epoch)
        db.run('DELETE FROM events WHERE session_id = ?', validSessionId(sessionId))
        db.run('DELETE FROM event_keys WHERE session_id = ?', sessionId)
        db.run('DELETE FROM large_values WHERE session_id = ?', sessionId)
        db.run('DELETE FROM log_sizes WHERE session_id = ?', sessionId)
      })
      db.scrubSoon()
    }
  }
}

function readPage(db: Database, sessionId: string, range: Required<ReadOptions>): StoredEvent[] {
  const { after, limit, bareUntil } = range
  const sql = 'SELECT seq, at, body FROM events WHERE session_id = ? AND seq > ? ORDER BY seq LIMIT ?'
  const page: DecodedEvent[] = []
  for (let bytes = 0; page.length < limit && bytes < PAGE_BYTES; ) {
    const atOnce = Math.min(READ_BATCH, limit - page.length)
    const rows = db.all(sql, sessionId, page.at(-1)?.event.seq ?? after, atOnce)
    for (const { seq, at, body } of rows) {
      page.push(decodeEvent(Number(seq), Number(at), String(body)))
      bytes += String(body).length
    }
    if (rows.length < atOnce) break
  }
  const shown = fitting(page, bareUntil)
  return fill(shown, largeValues(db, sessionId, hashesOf(shown, bareUntil)), bareUntil)
}

function largeValues(db: Database, sessionId: string, hashes: string[]): Map<string, string> {
  const sql = 'SELECT value FROM large_values WHERE session_id = ? AND hash = ?'
  const found = new Map<string, string>()
  for (const hash of hashes) {
    const row = found.has(hash) ? undefined : db.get(sql, sessionId, hash)
    if (row) found.set(hash, String(row.value))
  }
  return found
}

function append(db: Database, sessionId: string, events: NewEvent[], epoch: number | undefined): StoredEvent[] {
  validSessionId(sessionId)
  const { bodies, large } = encodeEvents(events)
  return db.transaction(() => {
    if (epoch !== undefined) assertEpoch(db, sessionId, epoch)
    for (const key of keysOf(events)) {
      const taken = db.run('INSERT OR IGNORE INTO event_keys VALUES (?, ?)', sessionId, key) === 0
      if (taken) throw eventExists(key)
    }
    const at = Date.now()
    let seq = lastSeq(db, sessionId)
    let bytes = bodies.reduce((sum, body) => sum + Buffer.byteLength(body), 0)
    for (const [hash, value] of large) {
      const isNew = db.run('INSERT OR IGNORE INTO large_values VALUES (?, ?, ?)', sessionId, hash, value) > 0
      if (isNew) bytes += Buffer.byteLength(value)
    }
    db.run(ADD_BYTES, sessionId, bytes)
    const stored = bodies.map((body) => {
      seq++
      db.run('INSERT INTO events VALUES (?, ?, ?, ?)', sessionId, seq, at, body)
      return decodeEvent(seq, at, body)
    })
    return fill(stored, large)
  })
}

function lastSeq(db: Database, sessionId: string): number {
  return Number(
    db.get('SELECT MAX(seq) AS last FROM events WHERE session_id = ?', validSessionId(sessionId))?.last ?? 0
  )
}

function assertEpoch(db: Database, sessionId: string, epoch: number): void {
  const current = db.get('SELECT epoch FROM sessions WHERE session_id = ?', sessionId)
  if (current?.epoch !== epoch) throw leaseLost()
}
