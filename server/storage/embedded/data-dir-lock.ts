import { chmodSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { AppError, messageOf } from '../../lib/errors.ts'
import { makeFolder } from '../../lib/files/make-folder.ts'
import { isBusy } from './sqlite-error.ts'

export interface DataDirLock {
  release(): void
}

/** Keeps the handles referenced: a collected handle would release its lock. */
const held = new Set<DatabaseSync>()

/**
 * Makes this process the only `serve` on a data folder. An open SQLite transaction holds a lock of the kernel, so the lock ends
 * with the process however that dies. Never open lock.db in any other way here: closing it would release the lock.
 */
export function lockDataDir(dataDir: string): DataDirLock {
  const sidecar = join(dataDir, 'lock.json')
  const db = takeLock(dataDir, sidecar)
  held.add(db)
  describeOwner(sidecar)
  return {
    release() {
      if (!held.delete(db)) return
      rmSync(sidecar, { force: true })
      db.close()
    }
  }
}

function takeLock(dataDir: string, sidecar: string): DatabaseSync {
  const file = join(dataDir, 'lock.db')
  let db: DatabaseSync | undefined
  try {
    makeFolder(dataDir)
    db = new DatabaseSync(file, { timeout: 0 })
    db.exec('BEGIN EXCLUSIVE')
    chmodSync(file, 0o600)
    return db
  } catch (error) {
    db?.close()
    if (isBusy(error)) throw inUse(dataDir, sidecar)
    throw new AppError(
      'unavailable',
      'store_unavailable',
      `The data folder ${dataDir} can't be locked (${messageOf(error)}); check DATA_DIR and its permissions.`,
      { cause: error }
    )
  }
}

/** Used only for the error message of a second start; the lock works without it. */
function describeOwner(sidecar: string): void {
  const text = JSON.stringify({ pid: process.pid, started: new Date().toISOString() })
  const draft = `${sidecar}.${process.pid}`
  try {
    writeFileSync(draft, text, { mode: 0o600 })
    renameSync(draft, sidecar)
  } catch {
    rmSync(draft, { force: true })
  }
}

function inUse(dataDir: string, sidecar: string): AppError {
  const owner = readOwner(sidecar)
  const who = owner ? ` (process ${owner.pid}, since ${owner.started})` : ''
  const message = `The data folder ${dataDir} is in use by another server${who}; stop that one or choose another DATA_DIR.`
  return new AppError('conflict', 'data_dir_in_use', message, { details: owner ?? {} })
}

function readOwner(sidecar: string): { pid: number; started: string } | undefined {
  try {
    const { pid, started }: { pid?: unknown; started?: unknown } = JSON.parse(readFileSync(sidecar, 'utf8'))
    return typeof pid === 'number' && typeof started === 'string' ? { pid, started: started.slice(0, 40) } : undefined
  } catch {
    return undefined
  }
}
