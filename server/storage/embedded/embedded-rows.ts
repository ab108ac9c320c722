import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { StoreRow } from '../backup/store-row.ts'
import { copyDatabase } from './copy-database.ts'
import { type Database, openDatabase, type Row } from './database.ts'

const PAGE = 200
const TABLES = ['sessions', 'events', 'event_keys', 'large_values', 'log_sizes', 'facts']

/** Reads a copy: opening the database itself could bring its schema up to date. `work` is a folder for the copy. */
export async function* readEmbeddedRows(dataDir: string, work: string): AsyncGenerator<StoreRow> {
  const dir = mkdtempSync(join(work, 'store-'))
  try {
    if (!copyDatabase(dataDir, join(dir, 'store.db'))) return
    const db = await openDatabase(dir)
    try {
      yield* rowsOf(db)
    } finally {
      db.close()
    }
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

function* rowsOf(db: Database): Generator<StoreRow> {
  for (const row of db.all('SELECT session_id, epoch, created_at, active_at FROM sessions')) {
    const [epoch, createdAt, activeAt] = [row.epoch, row.created_at, row.active_at].map(Number)
    yield { kind: 'session', id: idOf(row), epoch: epoch ?? 0, createdAt: createdAt ?? 0, activeAt: activeAt ?? 0 }
  }
  for (const row of db.all('SELECT session_id, bytes FROM log_sizes')) {
    yield { kind: 'log-size', id: idOf(row), bytes: Number(row.bytes) }
  }
  for (const { space, key, value } of db.all('SELECT space, key, value FROM facts')) {
    yield { kind: 'fact', space: String(space), key: String(key), value: String(value) }
  }
  for (const row of db.all('SELECT session_id, key FROM event_keys')) {
    yield { kind: 'event-key', id: idOf(row), key: String(row.key) }
  }
  const floor = Number(db.get(`SELECT value FROM meta WHERE key = 'epoch_floor'`)?.value ?? 0)
  if (floor > 0) yield { kind: 'floor', epoch: floor }
  for (const row of db.all('SELECT DISTINCT session_id FROM events')) yield* eventsOf(db, idOf(row))
  for (const row of db.all('SELECT session_id, hash FROM large_values')) {
    const sql = 'SELECT value FROM large_values WHERE session_id = ? AND hash = ?'
    const value = String(db.get(sql, idOf(row), String(row.hash))?.value)
    yield { kind: 'large', id: idOf(row), hash: String(row.hash), value }
  }
}

function* eventsOf(db: Database, id: string): Generator<StoreRow> {
  const sql = 'SELECT seq, at, body FROM events WHERE session_id = ? AND seq > ? ORDER BY seq LIMIT ?'
  for (let after = 0; ; ) {
    const page = db.all(sql, id, after, PAGE)
    for (const { seq, at, body } of page) {
      after = Number(seq)
      yield { kind: 'event', id, seq: after, at: Number(at), body: String(body) }
    }
    if (page.length < PAGE) return
  }
}

function idOf(row: Row): string {
  return String(row.session_id)
}

/** Replaces everything in the database of this folder, except the ids of the deployment and of the store. */
export async function writeEmbeddedRows(dataDir: string, rows: AsyncIterable<StoreRow>): Promise<void> {
  const db = await openDatabase(dataDir)
  try {
    for (const table of TABLES) db.run(`DELETE FROM ${table}`)
    db.run(`DELETE FROM meta WHERE key = 'epoch_floor'`)
    let batch: StoreRow[] = []
    const flush = () => {
      db.transaction(() => {
        for (const row of batch) insert(db, row)
      })
      batch = []
    }
    for await (const row of rows) if (batch.push(row) >= PAGE) flush()
    flush()
  } finally {
    db.close()
  }
}

function insert(db: Database, row: StoreRow): void {
  if (row.kind === 'session') {
    const columns = 'session_id, epoch, holder, lease_until, busy, live, container_id, created_at, active_at'
    const values = [row.id, row.epoch, row.createdAt, row.activeAt]
    db.run(`INSERT INTO sessions (${columns}) VALUES (?, ?, NULL, 0, 0, 0, NULL, ?, ?)`, ...values)
  } else if (row.kind === 'event') db.run('INSERT INTO events VALUES (?, ?, ?, ?)', row.id, row.seq, row.at, row.body)
  else if (row.kind === 'event-key') db.run('INSERT INTO event_keys VALUES (?, ?)', row.id, row.key)
  else if (row.kind === 'large') db.run('INSERT INTO large_values VALUES (?, ?, ?)', row.id, row.hash, row.value)
  else if (row.kind === 'log-size') db.run('INSERT INTO log_sizes VALUES (?, ?)', row.id, row.bytes)
  else if (row.kind === 'fact') db.run('INSERT INTO facts VALUES (?, ?, ?)', row.space, row.key, row.value)
  else db.run(`INSERT OR REPLACE INTO meta VALUES ('epoch_floor', ?)`, String(row.epoch))
}
