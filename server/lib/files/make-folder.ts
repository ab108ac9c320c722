/**
 * Makes folders with their parents. Node's own recursive `mkdir` never returns where the system answers ENOENT to an existing
 * parent, as it does below /proc: it goes up to the parent and down again for ever. Here each folder is tried once.
 */
import { existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/** For its owner only. Returns the topmost folder that it made; undefined: all were there. */
export function makeFolder(folder: string): string | undefined {
  if (isFolder(folder)) return undefined
  const missing = [resolve(folder)]
  for (let at = dirname(resolve(folder)); !existsSync(at); at = dirname(at)) missing.unshift(at)
  return missing.filter(makeOne)[0]
}

const isFolder = (path: string) => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true

/** False: it is there. Another process may have made it at the same time. */
function makeOne(folder: string): boolean {
  try {
    mkdirSync(folder, { mode: 0o700 })
    return true
  } catch (error) {
    // A folder that may not be looked into, or a link to nothing: the reason says more than "it exists".
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || !statSync(folder).isDirectory()) throw error
    return false
  }
}
