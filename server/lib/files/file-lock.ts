import { randomUUID } from 'node:crypto'
import { lstatSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { AppError, hasCode } from '../errors.ts'

const LOOK_AGAIN_MS = 25

/**
 * Runs a job while no other process runs one with the same lock file. A lock file older than `staleMs` was left by a process that died, so
 * a job must end before. Anything else at this path, or a file from the future, is nobody's lock. Two processes that find the same stale
 * file at the same instant may both run.
 */
export async function withFileLock<T>(file: string, staleMs: number, job: () => Promise<T>): Promise<T> {
  const mine = randomUUID()
  const until = Date.now() + 2 * staleMs
  while (!take(file, mine)) {
    if (Date.now() > until) throw new AppError('timeout', 'deadline_exceeded', `Others have held ${file} for too long.`)
    if (isStale(file, staleMs)) removeLock(file)
    else await delay(LOOK_AGAIN_MS)
  }
  try {
    return await job()
  } finally {
    if (readOr(file) === mine) rmSync(file, { force: true })
  }
}

function take(file: string, text: string): boolean {
  try {
    writeFileSync(file, text, { flag: 'wx', mode: 0o600 })
    return true
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false
    throw error
  }
}

function isStale(file: string, staleMs: number): boolean {
  const stat = lstatSync(file, { throwIfNoEntry: false })
  return stat !== undefined && (!stat.isFile() || Math.abs(Date.now() - stat.mtimeMs) > staleMs)
}

function removeLock(file: string): void {
  const isFolder = lstatSync(file, { throwIfNoEntry: false })?.isDirectory() ?? false
  try {
    if (isFolder) rmdirSync(file)
    else rmSync(file, { force: true })
  } catch (error) {
    if (!isFolder || hasCode(error, 'ENOENT')) throw error
    throw new AppError('unavailable', 'file_unwritable', `${file} is a folder in the place of a lock file: remove it.`)
  }
}

function readOr(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}
