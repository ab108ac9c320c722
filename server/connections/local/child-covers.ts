/**
 * Decides which of our files are hidden from a child: our folders as a whole, whatever the child's entry says, and each of our other
 * files, by its folder if nothing else is in it. A covered folder stays covered whatever happens in it; a covered file must be
 * covered again when it is replaced. The folders above can't be renamed, and links to our files can't be replaced.
 */
import { existsSync, readdirSync, readlinkSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, isAbsolute, join, relative, resolve } from 'node:path'
import { AppError } from '../../lib/errors.ts'
import type { Confinement } from './child-isolation.ts'

export interface OurPlaces {
  dataDir: string
  /** `mcp.json` and the like. */
  files: string[]
  /** Its folder is hidden if nothing else is in it. */
  credentialsFile?: string | undefined
  /**
   * Sockets of container engines and the like, and their folders: they would give a server the whole machine. They may appear later.
   * Servers whose command is the engine's keep them.
   */
  engines?: string[]
  /** Folders of other instances of the same user: the default places for settings and data. */
  userFolders?: string[]
  /** The data folder of this user's `serve`, if one runs when a child starts. */
  runningServe?: (() => string | undefined) | undefined
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

const ENGINE_COMMANDS = new Set(['docker', 'podman', 'nerdctl'])

/** More links than the kernel follows. */
const MAX_LINKS = 50

/** Throws if the child is given a path in a hidden folder: it would find nothing there. */
export function confine(child: StartedChild, places: OurPlaces | undefined): Confinement {
  const cwd = resolve(child.cwd ?? '.')
  if (!places) return { held: [], folders: [], files: [], engines: [], readOnly: [], replaceable: [], cwd }
  const given = givenFiles(places)
  const ours = [...given.map(real), real(places.dataDir)]
  const hidden = hiddenFolders(places)
  refuseHidden(child, cwd, places)
  const [folders, files] = [new Set(hidden), new Set<string>()]
  const isOpen = (path: string) => ![...folders].some((folder) => isWithin(path, folder)) && !files.has(path)
  for (const file of given.map(real).filter(isOpen)) {
    const folder = dirname(file)
    if (isOurs(folder, ours) && !uses(child, cwd, folder)) folders.add(folder)
    else files.add(file)
  }
  const present = (paths: (string | undefined)[]) =>
    paths.flatMap((path) => (path !== undefined && existsSync(path) ? [real(path)] : [])).filter(isOpen)
  const replaceable = present([places.readableFile])
  const programs = places.programs ?? []
  const links = [...watchedFiles(places), ...programs].flatMap((path) => followLinks(path).folders)
  const readOnly = outermost([...present([...programs, ...links]), ...replaceable])
  const held = [...new Set([...folders, ...files, ...readOnly].flatMap(foldersAbove))].sort(byLength)
  return {
    held,
    folders: [...folders].sort(byLength),
    files: [...files].filter(isOneLine),
    engines: enginesFor(child, cwd, places).filter(isOneLine),
    readOnly,
    replaceable: replaceable.filter(isOneLine),
    cwd
  }
}

/** A socket's own folder is better than the socket: it stays covered when the engine starts again. */
function enginesFor(child: StartedChild, cwd: string, { engines = [] }: OurPlaces): string[] {
  if (ENGINE_COMMANDS.has(basename(child.command))) return []
  const all = engines.map(real)
  return [
    ...new Set(
      all.map((place) => (hasOwnFolder(place, all) && !uses(child, cwd, dirname(place)) ? dirname(place) : place))
    )
  ]
}

function hasOwnFolder(place: string, all: string[]): boolean {
  const isFolder = statSync(place, { throwIfNoEntry: false })?.isDirectory() ?? false
  return !isFolder && isOurs(dirname(place), all)
}

function givenFiles({ files, credentialsFile }: OurPlaces): string[] {
  return credentialsFile === undefined ? files : [...files, credentialsFile]
}

/** Hidden from every child, whatever its entry says. */
function hiddenFolders(places: OurPlaces): string[] {
  const { dataDir, userFolders = [], credentialsFile, runningServe } = places
  const ours = [...givenFiles(places), dataDir].map(real)
  const folder = credentialsFile === undefined ? undefined : dirname(real(credentialsFile))
  const ofSecrets = folder !== undefined && isOurs(folder, ours) ? [folder] : []
  const others = [...userFolders, runningServe?.() ?? dataDir].filter((path) => existsSync(path))
  return outermost([dataDir, ...others, ...ofSecrets].map(real))
}

/**
 * Follows the links that the path itself is, not those above it. Nothing can be mounted onto a link, so nobody may change the folders
 * that these links are in.
 */
function followLinks(path: string): { folders: string[]; end: string } {
  const folders: string[] = []
  let end = resolve(path)
  while (folders.length < MAX_LINKS) {
    const folder = real(dirname(end))
    try {
      end = resolve(folder, readlinkSync(join(folder, basename(end))))
    } catch {
      break
    }
    folders.push(folder)
  }
  return { folders, end }
}

/** Changes if one of our files becomes a link, or a link leads elsewhere: what was covered is then no longer our file. */
export function linkEnds(places: OurPlaces): string {
  return watchedFiles(places)
    .map((path) => followLinks(path).end)
    .join('\n')
}

export function watchedFiles(places: OurPlaces): string[] {
  return [...givenFiles(places), ...(places.readableFile ? [places.readableFile] : [])]
}

/** Without those that lie in others of them. */
function outermost(paths: string[]): string[] {
  const all = [...new Set(paths)]
  return all.filter((path) => !all.some((other) => other !== path && isWithin(path, other))).sort(byLength)
}

/**
 * A cover belongs to a path: if someone renames a folder above it, they can put their own folder there, with files that the next
 * start takes for ours.
 */
function foldersAbove(path: string): string[] {
  const folder = dirname(path)
  return folder === path || folder === '/' ? [] : [...foldersAbove(folder), folder]
}

/** Throws if a folder of ours is the child's home or one of its words. */
export function refuseHidden(child: StartedChild, cwd: string, places: OurPlaces): void {
  const words = [child.cwd ?? '', child.command, ...child.args]
  for (const folder of hiddenFolders(places)) {
    // For a child that starts in the folder every word would be a path in it, even the package of `npx @scope/name`.
    const isPath = (word: string) =>
      isWithin(cwd, folder)
        ? isAbsolute(word) || /^\.\.?\//.test(word) || existsSync(join(cwd, word))
        : word.includes('/')
    const isHidden = (path: string) => path !== '' && isPath(path) && isWithin(real(resolve(cwd, path)), folder)
    const named = words.find((word) => pathsIn(word).some(isHidden)) ?? [child.env.HOME ?? ''].find(isHidden)
    if (named === undefined) continue
    const [where, remedy] =
      folder === real(places.dataDir) ? [`the data folder (${folder})`, ', or set another DATA_DIR'] : [folder, '']
    const message = `The server "${child.server}" can't be started: "${named}" is in ${where}, which is hidden from servers. Move it elsewhere${remedy}.`
    throw new AppError('unavailable', 'server_not_startable', message, { details: { permanent: true } })
  }
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
