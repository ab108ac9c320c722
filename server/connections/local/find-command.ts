import { accessSync, constants, statSync } from 'node:fs'
import { resolve } from 'node:path'

/** Checks that a command can be run, before a wrapper runs it and reports errors in its own way. Throws as `spawn` would. */
export function checkCommand(command: string, path: string, cwd: string | undefined): void {
  const here = cwd ?? process.cwd()
  const places = command.includes('/') ? [''] : path.split(':')
  const found = places.map((place) => resolve(here, place, command)).filter((file) => isFile(file))
  if (found.length === 0) throw Object.assign(new Error(`spawn ${command} ENOENT`), { code: 'ENOENT' })
  if (!found.some(isExecutable)) throw Object.assign(new Error(`spawn ${command} EACCES`), { code: 'EACCES' })
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
