/**
 * Decides which of our files are hidden from a child: the whole data folder, and each of our other files, by its folder if
 * nothing else is in it. A covered folder stays covered whatever happens in it; a covered file must be covered again when it is
 * replaced. The folders above can't be renamed.
 */
import { existsSync, readdirSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, isAbsolute, join, relative, resolve } from 'node:path'
import { AppError } from '../../lib/errors.ts'
import type { Confinement } from './child-isolation.ts'

export interface OurPlaces {
  dataDir: string
  /** `mcp.json`, credentials and the like. */
  files: string[]
  /**
   * Sockets of container engines and their folders: they would give a server the whole machine. Servers whose command is the
   * engine's keep them.
   */
  engines?: string[]
  /** Folders of other instances of the same user: the default places for settings and data. */
  userFolders?: string[]
  /** Programs of ours, which a child may run but not change. */
  programs?: string[]
  /** A file that settings are read from, and that servers may read too. */
  readableFile?: string | undefined
}

interface StartedChild {
  server: string
  command: string
  args: string[]
  cwd?: string | undefined
  env: Record<string, string>
}

/** Covered in the data folder if it can't be covered as a whole because the user's home is in it. */
const DATA_FOLDERS = ['audit', 'checkpoints', 'deployments', 'logins', 'server-logs']
const DATA_FILES = ['store.db', 'store.db-wal', 'store.db-shm', 'grants.json', 'lock.db', 'lock.json']

const ENGINE_COMMANDS = new Set(['docker', 'podman', 'nerdctl'])

/** Throws if the child is given a path in the data folder: it would find nothing there. */
export function confine(child: StartedChild, places: OurPlaces | undefined): Confinement {
  const cwd = resolve(child.cwd ?? '.')
  if (!places) return { held: [], folders: [], files: [], readOnly: [], replaceable: [], cwd }
  const dataDir = real(places.dataDir)
  const isHome = isWithin(real(child.env.HOME ?? '/'), dataDir)
  if (!isHome) refuseData(child, cwd, dataDir)
  const inData = (names: string[]) => names.map((name) => join(dataDir, name)).filter((path) => existsSync(path))
  const folders = new Set(isHome ? inData(DATA_FOLDERS) : [dataDir])
  const files = new Set(isHome ? inData(DATA_FILES) : [])
  for (const file of places.files.map(real).filter((path) => isHome || !isWithin(path, dataDir))) {
    const folder = dirname(file)
    if (isOurs(folder, [...places.files.map(real), dataDir]) && !uses(child, cwd, folder)) folders.add(folder)
    else files.add(file)
  }
  for (const folder of (places.userFolders ?? []).filter((path) => existsSync(path)).map(real)) {
    const isCovered = [...folders].some((covered) => isWithin(folder, covered))
    if (!isCovered && folder !== dataDir && !uses(child, cwd, folder)) folders.add(folder)
  }
  const isOpen = (path: string) => ![...folders].some((folder) => isWithin(path, folder)) && !files.has(path)
  const present = (paths: (string | undefined)[]) =>
    paths.flatMap((path) => (path !== undefined && existsSync(path) ? [real(path)] : [])).filter(isOpen)
  const replaceable = present([places.readableFile])
  const readOnly = [...new Set([...present(places.programs ?? []), ...replaceable])]
  const held = [...new Set([...folders, ...files, ...readOnly].flatMap(foldersAbove))].sort(byLength)
  if (!ENGINE_COMMANDS.has(basename(child.command))) {
    for (const place of (places.engines ?? []).filter((path) => existsSync(path)))
      (statSync(place).isDirectory() ? folders : files).add(real(place))
  }
  return {
    held,
    folders: [...folders].sort(byLength),
    files: [...files].filter(isOneLine),
    readOnly,
    replaceable: replaceable.filter(isOneLine),
    cwd
  }
}

/**
 * A cover belongs to a path: if someone renames a folder above it, they can put their own folder there, with files that the next
 * start takes for ours.
 */
function foldersAbove(path: string): string[] {
  const folder = dirname(path)
  return folder === path || folder === '/' ? [] : [...foldersAbove(folder), folder]
}

function refuseData(child: StartedChild, cwd: string, dataDir: string): void {
  // For a child that starts in the data folder every word would be a path in it, even the package of `npx @scope/name`.
  const isPath = (word: string) =>
    isWithin(cwd, dataDir)
      ? isAbsolute(word) || /^\.\.?\//.test(word) || existsSync(join(cwd, word))
      : word.includes('/')
  const words = [child.cwd ?? '', child.command, ...child.args]
  const named = words.find((word) =>
    pathsIn(word).some((path) => path !== '' && isPath(path) && isWithin(real(resolve(cwd, path)), dataDir))
  )
  if (named === undefined) return
  const message = `The server "${child.server}" can't be started: "${named}" is in the data folder (${dataDir}), which is hidden from servers. Move it elsewhere, or set another DATA_DIR.`
  throw new AppError('unavailable', 'server_not_startable', message, { details: { permanent: true } })
}

/** Whether the folder contains only our files, their locks and their drafts. */
export function isOurs(folder: string, ours: string[]): boolean {
  if (folder === '/') return false
  const names = ours.filter((path) => dirname(path) === folder).map((path) => basename(path))
  try {
    return readdirSync(folder).every((name) => names.some((our) => name === our || name.startsWith(`${our}.`)))
  } catch {
    return false
  }
}

/** Whether the child works in the folder, or its arguments or environment mention it. */
function uses({ command, args, env }: StartedChild, cwd: string, folder: string): boolean {
  const words = [command, ...args, ...Object.values(env)].flatMap(pathsIn).filter((word) => isAbsolute(word))
  return [cwd, ...words].some((path) => isWithin(real(path), folder) || path.includes(`${folder}/`))
}

/** `--file=PATH` contains a path too. */
function pathsIn(word: string): string[] {
  const at = word.indexOf('=')
  return at < 0 ? [word] : [word, word.slice(at + 1)]
}

export function real(path: string): string {
  const absolute = resolve(path)
  try {
    return realpathSync(absolute)
  } catch {
    // The path may not exist yet, and its folder may be behind a link.
    const folder = dirname(absolute)
    return folder === absolute ? absolute : join(real(folder), basename(absolute))
  }
}

export function isWithin(path: string, folder: string): boolean {
  const rest = relative(folder, path)
  return rest === '' || !(rest === '..' || rest.startsWith('../') || isAbsolute(rest))
}

/** The guard reads paths line by line. */
function isOneLine(path: string): boolean {
  if (!path.includes('\n')) return true
  throw new AppError('invalid', 'invalid_setting', `The path ${JSON.stringify(path)} must not contain a line break.`)
}

function byLength(a: string, b: string): number {
  return a.length - b.length
}
