import { randomUUID } from 'node:crypto'
import { validSessionId } from '../session-id.ts'
import {
  type AcquireResult,
  ENDED_KEPT_MS,
  type SessionRecord,
  type SessionStore,
  type StoreOrigin
} from '../session-store.ts'
import type { Database, Row } from './database.ts'

const SET_OWNER = `UPDATE sessions SET epoch = ?, holder = ?, lease_until = ?, busy = 1 WHERE session_id = ?`

/** Every operation is one short transaction on the caller's thread. It reads the clock inside, after any wait for the lock. */
export function sqliteSessionStore(db: Database, rememberedId: string = randomUUID()): SessionStore {
  let known = rememberedId
  return {
    now: async () => Date.now(),
    deploymentId: async () => {
      known = deploymentId(db, known)
      return known
    },
    origin: async () => origin(db),
    heartbeat: async (instanceId, ttlMs) => {
      db.run('INSERT OR REPLACE INTO instances VALUES (?, ?)', instanceId, Date.now() + ttlMs)
    },
    instances: async () => liveInstances(db),
    endedInstances: async () =>
      db
        .all('SELECT instance_id FROM instances WHERE alive_until <= ?', Date.now())
        .map((row) => String(row.instance_id)),
    signOff: async (instanceId) => {
      db.transaction(() => {
        db.run('INSERT OR REPLACE INTO instances VALUES (?, ?)', instanceId, Date.now())
        db.run('UPDATE sessions SET holder = NULL, lease_until = 0, busy = 0 WHERE holder = ?', instanceId)
        setForks(db, instanceId, 0)
      })
    },
    acquire: async (sessionId, holder, leaseMs) => acquire(db, sessionId, holder, leaseMs),
    touch: async (sessionId, epoch, { leaseMs, busy, activity }) => {
      const now = Date.now()
      const sql = `UPDATE sessions SET lease_until = ?, busy = ?, active_at = CASE WHEN ? THEN ? ELSE active_at END
        WHERE session_id = ? AND epoch = ? AND holder IS NOT NULL`
      return db.run(sql, now + leaseMs, Number(busy), Number(activity), now, validSessionId(sessionId), epoch) > 0
    },
    visit: async (sessionId) => {
      db.run('UPDATE sessions SET active_at = ? WHERE session_id = ?', Date.now(), validSessionId(sessionId))
    },
    release: async (sessionId, epoch) => {
      const sql = 'UPDATE sessions SET holder = NULL, lease_until = 0, busy = 0 WHERE session_id = ? AND epoch = ?'
      db.run(sql, validSessionId(sessionId), epoch)
    },
    reserveForks: async (instanceId, forks, maxLive) => reserveForks(db, instanceId, forks, maxLive),
    reserve: async (sessionId, epoch, maxLive) => reserve(db, sessionId, epoch, maxLive),
    bind: async (sessionId, epoch, containerId) => {
      const sql = 'UPDATE sessions SET container_id = ?, live = 1 WHERE session_id = ? AND epoch = ?'
      return db.run(sql, containerId, validSessionId(sessionId), epoch) > 0
    },
    unbind: async (sessionId, epoch) => {
      const sql = 'UPDATE sessions SET container_id = NULL, live = 0 WHERE session_id = ? AND epoch = ?'
      return db.run(sql, validSessionId(sessionId), epoch) > 0
    },
    takeIdle: async (holder, options) => takeIdle(db, holder, options),
    get: async (sessionId) => find(db, sessionId),
    list: async () => db.all('SELECT * FROM sessions ORDER BY session_id').map(toRecord),
    countLive: async () => countLive(db),
    listLive: async () => db.all('SELECT * FROM sessions WHERE live = 1 ORDER BY active_at, session_id').map(toRecord),
    count: async () => Number(db.get('SELECT COUNT(*) AS count FROM sessions')?.count),
    remove: async (sessionId, epoch) => remove(db, sessionId, epoch),
    close: async () => db.close()
  }
}

function origin(db: Database): StoreOrigin {
  db.run(`INSERT OR IGNORE INTO meta VALUES ('origin', ?)`, JSON.stringify({ id: randomUUID(), at: Date.now() }))
  return JSON.parse(String(db.get(`SELECT value FROM meta WHERE key = 'origin'`)?.value)) as StoreOrigin
}

function deploymentId(db: Database, remembered: string): string {
  db.run(`INSERT OR IGNORE INTO meta VALUES ('deployment_id', ?)`, remembered)
  return String(db.get(`SELECT value FROM meta WHERE key = 'deployment_id'`)?.value)
}

function liveInstances(db: Database): string[] {
  const now = Date.now()
  db.run('DELETE FROM meta WHERE key IN (SELECT ? || instance_id FROM instances WHERE alive_until <= ?)', FORKS, now)
  db.run('DELETE FROM instances WHERE alive_until <= ?', now - ENDED_KEPT_MS)
  const rows = db.all('SELECT instance_id FROM instances WHERE alive_until > ? ORDER BY instance_id', now)
  return rows.map((row) => String(row.instance_id))
}

function acquire(db: Database, sessionId: string, holder: string, leaseMs: number): AcquireResult {
  return db.transaction(() => {
    const now = Date.now()
    const record = find(db, sessionId)
    if (!record) return { granted: true, record: create(db, sessionId, holder, now, now + leaseMs) }
    const held = record.holder !== null && record.leaseUntil > now
    if (held && record.busy && record.holder !== null && record.holder !== holder) {
      return { granted: false, holder: record.holder, retryInMs: record.leaseUntil - now }
    }
    const epoch = record.holder === holder ? record.epoch : nextEpoch(db, record.epoch, now)
    db.run(SET_OWNER, epoch, holder, now + leaseMs, sessionId)
    db.run('UPDATE sessions SET active_at = ? WHERE session_id = ?', now, sessionId)
    return { granted: true, record: mustFind(db, sessionId) }
  })
}

function create(db: Database, sessionId: string, holder: string, now: number, leaseUntil: number): SessionRecord {
  const sql = 'INSERT INTO sessions VALUES (?, ?, ?, ?, 1, 0, NULL, ?, ?, NULL)'
  db.run(sql, sessionId, nextEpoch(db, 0, now), holder, leaseUntil, now, now)
  return mustFind(db, sessionId)
}

function reserve(db: Database, sessionId: string, epoch: number, maxLive: number): 'ok' | 'full' | 'lost' {
  return db.transaction(() => {
    const record = find(db, sessionId)
    if (record?.epoch !== epoch) return 'lost'
    if (record.live) return 'ok'
    if (countLive(db) + countForks(db) >= maxLive) return 'full'
    db.run('UPDATE sessions SET live = 1 WHERE session_id = ?', sessionId)
    return 'ok'
  })
}

const FORKS = 'forks:'

function reserveForks(db: Database, instanceId: string, forks: number, maxLive: number): boolean {
  return db.transaction(() => {
    const known = Number(db.get('SELECT value FROM meta WHERE key = ?', `${FORKS}${instanceId}`)?.value ?? 0)
    if (forks > known && countLive(db) + countForks(db, instanceId) + forks > maxLive) return false
    setForks(db, instanceId, forks)
    return true
  })
}

function setForks(db: Database, instanceId: string, forks: number): void {
  if (forks === 0) db.run('DELETE FROM meta WHERE key = ?', `${FORKS}${instanceId}`)
  else db.run('INSERT OR REPLACE INTO meta VALUES (?, ?)', `${FORKS}${instanceId}`, String(forks))
}

/** The forks of the living instances except one. */
function countForks(db: Database, except = ''): number {
  const sql = `SELECT SUM(CAST(value AS INTEGER)) AS forks FROM meta JOIN instances ON key = ? || instance_id
    WHERE alive_until > ? AND instance_id <> ?`
  return Number(db.get(sql, FORKS, Date.now(), except)?.forks ?? 0)
}

function takeIdle(
  db: Database,
  holder: string,
  options: { idleMs: number; leaseMs: number; limit: number }
): SessionRecord[] {
  return db.transaction(() => {
    const now = Date.now()
    const sql = `SELECT session_id, epoch FROM sessions
      WHERE live = 1 AND active_at <= ?1 AND (lease_until <= ?2 OR (busy = 0 AND (holder IS NULL OR holder = ?3)))
      ORDER BY active_at, session_id LIMIT ?4`
    return db.all(sql, now - options.idleMs, now, holder, options.limit).map((row) => {
      const sessionId = String(row.session_id)
      db.run(SET_OWNER, nextEpoch(db, Number(row.epoch), now), holder, now + options.leaseMs, sessionId)
      return mustFind(db, sessionId)
    })
  })
}

/**
 * A removed session's epoch becomes the lower limit for new ones: a session that comes back in the same millisecond must not
 * repeat it.
 */
function remove(db: Database, sessionId: string, epoch: number): boolean {
  return db.transaction(() => {
    if (db.run('DELETE FROM sessions WHERE session_id = ? AND epoch = ?', validSessionId(sessionId), epoch) === 0)
      return false
    const floor = Math.max(epochFloor(db), epoch)
    db.run(`INSERT OR REPLACE INTO meta VALUES ('epoch_floor', ?)`, String(floor))
    return true
  })
}

function nextEpoch(db: Database, previous: number, now: number): number {
  return Math.max(previous + 1, epochFloor(db) + 1, now)
}

function epochFloor(db: Database): number {
  return Number(db.get(`SELECT value FROM meta WHERE key = 'epoch_floor'`)?.value ?? 0)
}

function countLive(db: Database): number {
  return Number(db.get('SELECT COUNT(*) AS live FROM sessions WHERE live = 1')?.live)
}

function find(db: Database, sessionId: string): SessionRecord | null {
  const row = db.get('SELECT * FROM sessions WHERE session_id = ?', validSessionId(sessionId))
  return row ? toRecord(row) : null
}

function mustFind(db: Database, sessionId: string): SessionRecord {
  const record = find(db, sessionId)
  if (!record) throw new Error('a session disappeared inside its own transaction')
  return record
}

function toRecord(row: Row): SessionRecord {
  return {
    sessionId: String(row.session_id),
    epoch: Number(row.epoch),
    holder: row.holder === null ? null : String(row.holder),
    leaseUntil: Number(row.lease_until),
    busy: row.busy === 1,
    live: row.live === 1,
    containerId: row.container_id === null ? null : String(row.container_id),
    createdAt: Number(row.created_at),
    activeAt: Number(row.active_at)
  }
}
