import { chmodSync, closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync, type SQLInputValue, type SQLOutputValue, type StatementSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { AppError } from '../../lib/errors.ts'
import { makeFolder } from '../../lib/files/make-folder.ts'
import { backoffMs } from '../../lib/waiting/backoff.ts'
import { MIGRATIONS } from './migrations.ts'
import { isBusy, translateSqliteError } from './sqlite-error.ts'

export type Row = Record<string, SQLOutputValue>

/** How long a statement waits for another process. It blocks this process meanwhile, so it is short. */
const BUSY_TIMEOUT_MS = 2000
const OPEN_ATTEMPTS = 8
const SCRUB_MS = 250
const SCRUB_AGAIN_MS = 5000

export class Database {
  readonly #db: DatabaseSync
  readonly #file: string
  readonly #statements = new Map<string, StatementSync>()
  #scrub: NodeJS.Timeout | undefined

  constructor(db: DatabaseSync, file: string) {
    this.#db = db
    this.#file = file
  }

  get(sql: string, ...values: SQLInputValue[]): Row | undefined {
    return this.#guard(() => this.#prepared(sql).get(...values))
  }

  all(sql: string, ...values: SQLInputValue[]): Row[] {
    return this.#guard(() => this.#prepared(sql).all(...values))
  }

  /** Returns the number of rows changed. */
  run(sql: string, ...values: SQLInputValue[]): number {
    return this.#guard(() => Number(this.#prepared(sql).run(...values).changes))
  }

  /** IMMEDIATE, because a transaction that reads first and writes later would fail if another process writes in between. */
  transaction<T>(work: () => T): T {
    this.#guard(() => this.#prepared('BEGIN IMMEDIATE').run())
    try {
      const result = work()
      this.#guard(() => this.#prepared('COMMIT').run())
      return result
    } catch (error) {
      if (this.#db.isTransaction) this.#guard(() => this.#prepared('ROLLBACK').run())
      throw error
    }
  }

  /**
   * Call this after a deletion: the deleted text is also in the write-ahead log until that is emptied. Several deletions share
   * one run. If a reader in another process blocks it, it is retried.
   */
  scrubSoon(waitMs = SCRUB_MS): void {
    if (this.#scrub) return
    this.#scrub = setTimeout(() => {
      this.#scrub = undefined
      if (this.#db.isOpen && !emptyLog(this.#db)) this.scrubSoon(SCRUB_AGAIN_MS)
    }, waitMs).unref()
  }

  close(): void {
    clearTimeout(this.#scrub)
    if (!this.#db.isOpen) return
    this.#statements.clear()
    this.#guard(() => this.#db.close())
  }

  #prepared(sql: string): StatementSync {
    const known = this.#statements.get(sql)
    if (known) return known
    const statement = this.#db.prepare(sql)
    this.#statements.set(sql, statement)
    return statement
  }

  #guard<T>(work: () => T): T {
    try {
      return work()
    } catch (error) {
      throw translateSqliteError(error, this.#file)
    }
  }
}

export async function openDatabase(dataDir: string): Promise<Database> {
  const file = join(dataDir, 'store.db')
  try {
    makeFolder(dataDir)
    // Create the file before SQLite does, so that others can never read it; -wal and -shm get the same mode.
    closeSync(openSync(file, 'a', 0o600))
    chmodSync(file, 0o600)
  } catch (error) {
    const message = `The data folder ${dataDir} can't be written; check DATA_DIR and its permissions.`
    throw new AppError('unavailable', 'store_unavailable', message, { cause: error })
  }
  return await openWithRetries(file)
}

/** Switching a new file to WAL needs exclusive access and does not wait for it, so processes that start together collide. */
async function openWithRetries(file: string): Promise<Database> {
  for (let attempt = 1; ; attempt++) {
    try {
      return openOnce(file)
    } catch (error) {
      if (!isBusy(error) || attempt === OPEN_ATTEMPTS) throw translateSqliteError(error, file)
    }
    await delay(backoffMs(attempt, { firstMs: 20, maxMs: 500 }))
  }
}

function openOnce(file: string): Database {
  const db = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS, enableForeignKeyConstraints: true })
  try {
    db.exec('PRAGMA journal_mode = WAL')
    // A commit is in the kernel when it returns, so kill -9 loses nothing. A power cut may lose the last commits but never tears
    // one. FULL would prevent that, but would block the whole process for an fsync per event.
    db.exec('PRAGMA synchronous = NORMAL')
    // Overwrites deleted rows with zeros: a deleted conversation must not be found in the file.
    db.exec('PRAGMA secure_delete = ON')
    migrate(db, file)
    emptyLog(db)
    return new Database(db, file)
  } catch (error) {
    db.close()
    throw error
  }
}

/** Writes the log into the database and empties it. Returns false if another process blocks it. */
function emptyLog(db: DatabaseSync): boolean {
  try {
    // Waiting for a reader would block this whole process.
    db.exec('PRAGMA busy_timeout = 0')
    return Number(db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.busy) === 0
  } catch {
    return false
  } finally {
    db.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`)
  }
}

function migrate(db: DatabaseSync, file: string): void {
  if (schemaVersion(db) === MIGRATIONS.length) return
  db.exec('BEGIN IMMEDIATE')
  try {
    const version = schemaVersion(db)
    if (version > MIGRATIONS.length) throw tooNew(file, version)
    for (const sql of MIGRATIONS.slice(version)) db.exec(sql)
    db.exec(`PRAGMA user_version = ${MIGRATIONS.length}`)
    db.exec('COMMIT')
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}

function schemaVersion(db: DatabaseSync): number {
  return Number(db.prepare('PRAGMA user_version').get()?.user_version)
}

function tooNew(file: string, version: number): AppError {
  const message = `The database ${file} has schema version ${version}, this program knows ${MIGRATIONS.length}; update the program or choose another DATA_DIR.`
  return new AppError('unavailable', 'store_too_new', message)
}
