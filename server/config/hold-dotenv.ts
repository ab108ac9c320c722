import { existsSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'

/**
 * Makes an empty `.env` if there is none. A file that does not exist can't be covered: a server could create it, and the next start
 * would read its settings. Returns a function that removes it again if it is still empty.
 */
export function holdDotenv(path = '.env'): () => void {
  if (existsSync(path)) return () => {}
  let file = resolve(path)
  try {
    // If the path is a broken link, this creates the file that it points to.
    writeFileSync(file, '', { flag: 'a', mode: 0o600 })
    file = realpathSync(file)
  } catch {
    // A process with our rights can't create it.
    return () => {}
  }
  return () => {
    if (statSync(file, { throwIfNoEntry: false })?.size === 0) rmSync(file, { force: true })
  }
}
