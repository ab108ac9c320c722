/** Checks whether others can get at the credentials file through its folder. The mode of the file is checked whenever it is read. */
import { realpathSync, statSync } from 'node:fs'
import { basename, dirname, isAbsolute, join, resolve } from 'node:path'
import { openCredentials } from '../../catalog/credentials.ts'
import type { LocalEntry, ServerEntry } from '../../catalog/server-entry.ts'
import { isOurs, isWithin, real } from '../../connections/local/child-covers.ts'
import type { Found } from './doctor-servers.ts'

const STICKY = 0o1000
const ADVICE = 'Move it to a separate folder, such as ~/.config/mcp-orchestrator/, and set CREDENTIALS_FILE.'

/** Throws if the file can't be used at all. `ours`: our own files that may be in the same folder. */
export function describeCredentials(setting: string, servers: Iterable<ServerEntry>, ours: string[]): Found {
  openCredentials({ file: setting, environment: {}, ours: [] }).source()
  const file = realpathSync(setting)
  const doubts = [...openFolders(file), ...readers(file, [...servers], ours)]
  return doubts.length === 0
    ? `${file}, readable by its owner only`
    : { warn: `${file}: ${doubts.join(' ')} ${ADVICE}` }
}

/** Someone who can write to a folder can replace the file. Others can't rename a folder inside a sticky one. */
function openFolders(file: string): string[] {
  const found: string[] = []
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    const { mode } = statSync(folder)
    const isDirect = folder === dirname(file)
    if ((mode & 0o022) !== 0 && (isDirect || (mode & STICKY) === 0)) found.push(folder)
    if (folder === dirname(folder)) break
  }
  return found.map((folder) => `others on this machine can write to ${folder}.`)
}

/** A folder with nothing else in it is hidden from servers as a whole. Otherwise only the file is hidden, and not from sandboxes. */
function readers(file: string, servers: ServerEntry[], ours: string[]): string[] {
  const isHidden = isOurs(dirname(file), [file, ...ours.map((path) => join(dirname(file), basename(path)))])
  return servers.flatMap((entry) => {
    if (entry.kind !== 'local' || !entry.enabled) return []
    const given = givenPaths(entry).find((path) => {
      if (isWithin(path, dirname(file))) return true
      return isWithin(file, path) && (!isHidden || entry.sandbox !== undefined)
    })
    return given === undefined ? [] : [`The server "${entry.name}" can use ${given}, which contains it.`]
  })
}

/** The paths in its arguments and variables, and its working folder. A container sees only its own folders. */
function givenPaths({ args, env, cwd, sandbox }: LocalEntry): string[] {
  const words = sandbox ? (sandbox.folders ?? []) : [...args, ...Object.values(env)].flatMap(pathsIn)
  return [...words, ...(cwd === undefined ? [] : [resolve(cwd)])].filter((path) => isAbsolute(path)).map(real)
}

/** Also finds the paths in `--root=PATH` and in a list `A:B`. */
function pathsIn(word: string): string[] {
  return [word, word.slice(word.indexOf('=') + 1)].flatMap((text) => [text, ...text.split(':')])
}
