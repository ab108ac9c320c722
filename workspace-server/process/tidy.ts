import { type Dirent, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { INSIDE, type TidyResult } from '../protocol.ts'
import { insideOurContainer } from './container-processes.ts'

/** The folders besides the workspace in which commands can leave files and queues. */
const TEMPORARY = ['/tmp', '/dev/shm', '/dev/mqueue']
/** The kernel's tables of System V memory, queues and semaphores. Each has a line of titles, and one for each object. */
const TABLES = ['/proc/sysvipc/shm', '/proc/sysvipc/msg', '/proc/sysvipc/sem']

/**
 * Objects of System V have no names that could be removed here: if there are any, the container is not tidy and must be replaced. The same
 * goes if the tables can't be read, or if commands have written to the server's own folder, where they can pass for the server.
 *
 * Nothing may run any more while the folders are emptied: it could write there again, or swap a folder for a link. Outside of our
 * container, it does nothing: the folders would be those of the machine.
 */
export async function tidy(
  endOthers: () => Promise<boolean>,
  { folders = TEMPORARY, tables = TABLES, state = INSIDE.state as string, isInside = insideOurContainer } = {}
): Promise<TidyResult> {
  const isEnded = isInside() && (await endOthers())
  return { isTidy: isEnded && folders.every(isEmptied) && tables.every(hasNoRows) && hasOnlyOwnState(state) }
}

function isEmptied(folder: string): boolean {
  try {
    for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true, force: true })
    return readdirSync(folder).length === 0
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ENOENT'
  }
}

/** The signs of life of the server and of the first process, the current epoch, and no file whose notice is awaited. */
function hasOnlyOwnState(state: string): boolean {
  const isOwn = (entry: Dirent) => {
    const path = join(state, entry.name)
    if (entry.name === 'alive') return entry.isFile() && readFileSync(path, 'latin1') === ''
    if (entry.name === 'idle-seen') return entry.isFile() && readFileSync(path, 'latin1') === '\n'
    if (entry.name === 'sync') return entry.isDirectory() && readdirSync(path).length === 0
    return entry.name === 'epochs' && entry.isDirectory() && hasOneEpoch(path)
  }
  try {
    return readdirSync(state, { withFileTypes: true }).every(isOwn)
  } catch {
    return false
  }
}

function hasOneEpoch(folder: string): boolean {
  const [epoch, ...others] = readdirSync(folder, { withFileTypes: true })
  if (!epoch?.isDirectory() || others.length > 0) return false
  return epoch.name === String(Number(epoch.name)) && readdirSync(join(folder, epoch.name)).length === 0
}

function hasNoRows(table: string): boolean {
  try {
    return readFileSync(table, 'latin1').trim().split('\n').length <= 1
  } catch {
    return false
  }
}
