import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, join, resolve } from 'node:path'

/** Where a command is that would be run by this name, as the system looks for it; undefined: nowhere. */
export function findCommand(command: string, { path, cwd = '.' }: { path: string; cwd?: string }): string | undefined {
  const places = command.includes('/')
    ? [resolve(cwd, command)]
    : path.split(delimiter).map((dir) => join(dir, command))
  return places.find(isExecutable)
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return statSync(file).isFile()
  } catch {
    return false
  }
}
