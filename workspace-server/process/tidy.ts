import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { TidyResult } from '../protocol.ts'
import { insideOurContainer } from './container-processes.ts'

/** The folders besides the workspace in which commands can leave files. */
const TEMPORARY = ['/tmp', '/dev/shm']

/**
 * Nothing may run any more while the folders are emptied: it could write there again, or swap a folder for a link. Outside of our
 * container, it does nothing: the folders would be those of the machine.
 */
export async function tidy(
  endOthers: () => Promise<boolean>,
  { folders = TEMPORARY, isInside = insideOurContainer } = {}
): Promise<TidyResult> {
  return { isTidy: isInside() && (await endOthers()) && folders.every(isEmptied) }
}

function isEmptied(folder: string): boolean {
  try {
    for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true, force: true })
    return readdirSync(folder).length === 0
  } catch {
    return false
  }
}
