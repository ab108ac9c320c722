import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { TidyResult } from '../protocol.ts'
import { insideOurContainer } from './container-processes.ts'

/** The folders besides the workspace in which commands can leave files and queues. */
const TEMPORARY = ['/tmp', '/dev/shm', '/dev/mqueue']
/** The kernel's tables of System V memory, queues and semaphores. Each has a line of titles, and one for each object. */
const TABLES = ['/proc/sysvipc/shm', '/proc/sysvipc/msg', '/proc/sysvipc/sem']

/**
 * Objects of System V have no names that could be removed here: if there are any, the container is not tidy and must be replaced. The same
 * goes if the tables can't be read.
 *
 * Nothing may run any more while the folders are emptied: it could write there again, or swap a folder for a link. Outside of our
 * container, it does nothing: the folders would be those of the machine.
 */
export async function tidy(
  endOthers: () => Promise<boolean>,
  { folders = TEMPORARY, tables = TABLES, isInside = insideOurContainer } = {}
): Promise<TidyResult> {
  return { isTidy: isInside() && (await endOthers()) && folders.every(isEmptied) && tables.every(hasNoRows) }
}

function isEmptied(folder: string): boolean {
  try {
    for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true, force: true })
    return readdirSync(folder).length === 0
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ENOENT'
  }
}

function hasNoRows(table: string): boolean {
  try {
    return readFileSync(table, 'latin1').trim().split('\n').length <= 1
  } catch {
    return false
  }
}
