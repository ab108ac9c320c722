/**
 * Gives every test run its own temporary folder and removes it at the end, so that a run leaves nothing behind on the
 * machine, whatever its tests and their child processes forgot to remove.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export function setup(): () => void {
  const before = process.env.TMPDIR
  // A short name: sockets below it must fit into 107 characters.
  const folder = mkdtempSync(join(tmpdir(), 'mt-'))
  process.env.TMPDIR = folder
  // The processes that tests start share their compiled code.
  process.env.NODE_COMPILE_CACHE = join(folder, 'compiled')
  return () => {
    if (before === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = before
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })
  }
}
