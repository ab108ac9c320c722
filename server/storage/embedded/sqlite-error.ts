import { AppError, messageOf } from '../../lib/errors.ts'
import { storeUnavailable } from '../store-errors.ts'

/** Primary result codes of SQLite that mean something to the user. */
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

/** Turns what node:sqlite throws into the house's error; passes everything else on. */
export function translateSqliteError(error: unknown, file: string): unknown {
  const code = sqliteCode(error)
  if (code === undefined) return isClosed(error) ? storeUnavailable('The store is closed.', error) : error
  if (code === CORRUPT || code === NOTADB) {
    return new AppError(
      'unavailable',
      'store_corrupt',
      `The database ${file} is damaged; move it away or restore a copy, then start again.`,
      { cause: error }
    )
  }
  return storeUnavailable(`${reason(code, error)} (database ${file}).`, error)
}

function reason(code: number, error: unknown): string {
  if (code === BUSY || code === LOCKED) return 'The database is held by another process for too long; try again'
  if (code === READONLY) return 'The database may not be written; check the permissions of the data folder'
  if (code === FULL) return 'The disk of the data folder is full; free some space'
  return `The database failed: ${messageOf(error)}`
}

function isClosed(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_INVALID_STATE'
}
