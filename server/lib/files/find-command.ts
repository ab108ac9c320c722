import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, resolve } from 'node:path'

interface Lookup {
  path: string
  cwd?: string | undefined
}

/** Returns the file that the system would run for this command, or undefined if there is none. */
export function findCommand(command: string, lookup: Lookup): string | undefined {
  return filesOf(command, lookup).find(isExecutable)
}

/** Checks that a command can be run, before a wrapper runs it and reports errors in its own way. Throws as `spawn` would. */
export function checkCommand(command: string, lookup: Lookup): void {
  const files = filesOf(command, lookup)
  if (files.some(isExecutable)) return
  const code = files.length === 0 ? 'ENOENT' : 'EACCES'
  throw Object.assign(new Error(`spawn ${command} ${code}`), { code })
}

function filesOf(command: string, { path, cwd = '.' }: Lookup): string[] {
  const folders = command.includes('/') ? [''] : path.split(delimiter)
  return folders.map((folder) => resolve(cwd, folder, command)).filter(isFile)
}

function isFile(path: string): boolean {
  return succeeds(() => statSync(path).isFile())
}

function isExecutable(path: string): boolean {
  return succeeds(() => accessSync(path, constants.X_OK) === undefined)
}

function succeeds(check: () => boolean): boolean {
  try {
    return check()
  } catch {
    return false
  }
}
