/**
 * Marks data that a restore has not completed. It is not served, and `restore` may replace it. With Redis, the marker is a key
 * there (`redis-backup.ts`); otherwise it is a file in the data folder.
 */
import { existsSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '../../lib/errors.ts'

const MARKER = 'unfinished-restore'
/** Everything that a restore writes. */
const RESTORED = ['audit', 'checkpoints', 'grants.json', 'logins', 'restored-config', 'store.db']

export function isRestoreUnfinished(dataDir: string): boolean {
  return existsSync(join(dataDir, MARKER))
}

export async function markFolder(dataDir: string): Promise<void> {
  await writeFile(join(dataDir, MARKER), 'Run the restore again.\n', { mode: 0o600, flush: true })
}

export async function unmarkFolder(dataDir: string): Promise<void> {
  await rm(join(dataDir, MARKER))
}

/** Removes what an interrupted restore has written, and nothing else. */
export async function removeRestored(dataDir: string): Promise<void> {
  for (const name of RESTORED) await rm(join(dataDir, name), { recursive: true, force: true })
}

export function restoreUnfinished(where: string): AppError {
  const message = `The restore to ${where} is incomplete. If it no longer runs, run "mcp-orchestrator restore" (or "migrate") again: it replaces what is there.`
  return new AppError('conflict', 'restore_unfinished', message)
}
