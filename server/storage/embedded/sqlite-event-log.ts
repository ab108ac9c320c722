import { decodeEvent, encodeEvents, keysOf, readRange } from '../event-encoding.ts'
import type { EventLog, NewEvent, StoredEvent } from '../event-log.ts'
import { validSessionId } from '../session-id.ts'
import { eventExists, leaseLost } from '../store-errors.ts'
import type { Database } from './database.ts'

export function sqliteEventLog(db: Database): EventLog {
  return {
    append: async (sessionId, events, options = {}) => append(db, sessionId, events, options.epoch),
    read: async (sessionId, options) => {
      const { after, limit } = readRange(options)
      const sql = 'SELECT seq, at, body FROM events WHERE session_id = ? AND seq > ? ORDER BY seq LIMIT ?'
      return db.all(sql, validSessionId(sessionId), after, limit).map((row) => {
        return decodeEvent(Number(row.seq), Number(row.at), String(row.body))
      })
    },
    lastSeq: async (sessionId) => lastSeq(db, sessionId),
    remove: async (sessionId) => {
      db.transaction(() => {
        db.run('DELETE FROM events WHERE session_id = ?', validSessionId(sessionId))
        db.run('DELETE FROM event_keys WHERE session_id = ?', sessionId)
      })
    }
  }
}

function append(db: Database, sessionId: string, events: NewEvent[], epoch: number | undefined): StoredEvent[] {
  validSessionId(sessionId)
  const bodies = encodeEvents(events)
  return db.transaction(() => {
    if (epoch !== undefined) {
      const current = db.get('SELECT epoch FROM sessions WHERE session_id = ?', sessionId)
      if (current?.epoch !== epoch) throw leaseLost()
    }
    for (const key of keysOf(events)) {
      const taken = db.run('INSERT OR IGNORE INTO event_keys VALUES (?, ?)', sessionId, key) === 0
      if (taken) throw eventExists(key)
    }
    const at = Date.now()
    let seq = lastSeq(db, sessionId)
    return bodies.map((body) => {
      seq++
      db.run('INSERT INTO events VALUES (?, ?, ?, ?)', sessionId, seq, at, body)
      return decodeEvent(seq, at, body)
    })
  })
}

function lastSeq(db: Database, sessionId: string): number {
  return Number(
    db.get('SELECT MAX(seq) AS last FROM events WHERE session_id = ?', validSessionId(sessionId))?.last ?? 0
  )
}
