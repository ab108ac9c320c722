import { chmodSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { isFull, translateSqliteError } from './sqlite-error.ts'

/**
 * Makes a consistent copy of the store while servers use it. The copy contains no instances and no containers: it becomes another
 * deployment, which must not touch the original's sandboxes. Returns false if there is no store in this folder.
 */
export function copyDatabase(dataDir: string, to: string): boolean {
  const file = join(dataDir, 'store.db')
  if (!existsSync(file)) return false
  try {
    const source = new DatabaseSync(file, { timeout: 10_000 })
    try {
      source.prepare('VACUUM INTO ?').run(to)
    } finally {
      source.close()
    }
    chmodSync(to, 0o600)
    const copy = new DatabaseSync(to)
    try {
      copy.exec(`
        PRAGMA journal_mode = DELETE;
        UPDATE sessions SET holder = NULL, lease_until = 0, busy = 0, live = 0, container_id = NULL;
        DELETE FROM instances;
        DELETE FROM meta WHERE key IN ('deployment_id', 'origin');
      `)
    } finally {
      copy.close()
    }
    return true
  } catch (error) {
    // The disk of the copy is full, not the one of the store.
    if (isFull(error)) throw Object.assign(new Error(`no space left for ${to}`), { code: 'ENOSPC' })
    throw translateSqliteError(error, file)
  }
}
