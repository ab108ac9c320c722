import { AppError, hasCode, messageOf } from '../../lib/errors.ts'
import { storeUnavailable } from '../store-errors.ts'

/** SQLite's primary result codes that matter to the user. */
const BUSY = 5
const LOCKED = 6
const READONLY = 8
const CORRUPT = 11
const FULL = 13
const NOTADB = 26

function sqliteCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return undefined
  return error.errcode & 0xff
}

export function isBusy(error: unknown): boolean {
  const code = sqliteCode(error)
  return code === BUSY || code === LOCKED
}

export function isFull(error: unknown): boolean {
  return sqliteCode(error) === FULL
}

/** Translates an error of node:sqlite to an AppError; returns all others unchanged. */
export function translateSqliteError(error: unknown, file: string): unknown {
  const code = sqliteCode(error)
  if (code === undefined) return isClosed(error) ? storeUnavailable('The store is closed.', error) : error
  if (code === CORRUPT || code === NOTADB) {
    const message = 'The database is damaged; its operator must move it away or restore a backup, then start again.'
    return new AppError('unavailable', 'store_corrupt', message, { cause: error, where: `database ${file}` })
  }
  return storeUnavailable(`${reason(code, error)}.`, error, `database ${file}`)
}

function reason(code: number, error: unknown): string {
  if (code === BUSY || code === LOCKED) return 'Another process has locked the database for too long; try again'
  if (code === READONLY) return 'The database is not writable; check the permissions of the data folder'
  if (code === FULL) return 'The disk of the data folder is full; free some space'
  return `The database failed: ${messageOf(error)}`
}

function isClosed(error: unknown): boolean {
  return hasCode(error, 'ERR_INVALID_STATE')
}
