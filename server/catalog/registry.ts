/**
 * The registry of MCP servers: the entries of `mcp.json`. Owns reading and comparing them; starts nothing and knows no secrets.
 * Invariant: an entry that can't be read is reported with its line and does not hide the others.
 */
import { AppError, hasCode } from '../lib/errors.ts'
import { readSmallFile, whyUnreadable } from '../lib/files/read-small-file.ts'
import { isRecord } from '../lib/is-record.ts'
import { foldName } from '../lib/near-names.ts'
import { EntryProblem } from './entry-values.ts'
import { JsonSyntaxError, type LocatedJson, parseJsonWithLines } from './json-with-lines.ts'
import { readEntry, unknownKeys } from './read-entry.ts'
import type { ServerEntry } from './server-entry.ts'

export interface RegistryProblem {
  server?: string
  line: number
  reason: string
  /** False if the entry works, but contains something that we don't know. */
  fatal: boolean
}

export interface Registry {
  servers: Map<string, ServerEntry>
  problems: RegistryProblem[]
}

export const MAX_REGISTRY_BYTES = 4 * 1024 * 1024
const MAX_SERVERS = 1000

/** Throws if the file as a whole can't be used. With `optional`, a missing file is an empty registry. */
export async function loadRegistry(file: string, options: { optional: boolean }): Promise<Registry> {
  let text: string
  try {
    text = readSmallFile(file, MAX_REGISTRY_BYTES, { anyKind: true })
  } catch (error) {
    if (options.optional && hasCode(error, 'ENOENT')) return { servers: new Map(), problems: [] }
    throw new AppError('invalid', 'registry_unreadable', `${file} can't be used: ${whyUnreadable(error)}.`, {
      cause: error
    })
  }
  return readRegistry(text, file)
}

export function readRegistry(text: string, file: string): Registry {
  const located = locate(text, file)
  const { value } = located
  const listed = isRecord(value) ? (value.mcpServers ?? value.servers) : undefined
  if (!isRecord(listed)) throw broken(file, 1, 'it needs an object "mcpServers"')
  const root = isRecord(value) && value.mcpServers !== undefined ? 'mcpServers' : 'servers'
  const names = Object.keys(listed)
  if (names.length > MAX_SERVERS) throw broken(file, 1, `it has more than ${MAX_SERVERS} servers`)
  const registry: Registry = { servers: new Map(), problems: [] }
  const taken = new Map<string, string>()
  for (const name of names) addEntry({ registry, taken, located, root }, name, listed[name])
  return registry
}

interface Reading {
  registry: Registry
  /** The names so far, by `foldName`: two that look alike would be taken for each other. */
  taken: Map<string, string>
  located: LocatedJson
  root: string
}

function addEntry({ registry, taken, located, root }: Reading, name: string, raw: unknown): void {
  const lineOf = (path: string[]) => located.lineOf([root, name, ...path])
  try {
    const alike = taken.get(foldName(name))
    if (alike !== undefined)
      throw new EntryProblem([], `its name is too like that of "${alike}": give one of them another name`)
    registry.servers.set(name, readEntry(name, raw, lineOf([])))
    taken.set(foldName(name), name)
  } catch (error) {
    if (!(error instanceof EntryProblem)) throw error
    registry.problems.push({ server: name, line: lineOf(error.path), reason: error.sentence, fatal: true })
    return
  }
  for (const key of isRecord(raw) ? unknownKeys(raw) : []) {
    registry.problems.push({ server: name, line: lineOf([key]), reason: `unknown key "${key}"`, fatal: false })
  }
}

function locate(text: string, file: string): LocatedJson {
  try {
    return parseJsonWithLines(text)
  } catch (error) {
    if (error instanceof JsonSyntaxError) throw broken(file, error.line, error.message, error.place)
    throw error
  }
}

function broken(file: string, line: number, reason: string, place = `line ${line}`): AppError {
  return new AppError('invalid', 'registry_malformed', `${file}, ${place}: ${reason}.`, { details: { line } })
}

export function describeProblem(file: string, { server, line, reason, fatal }: RegistryProblem): string {
  const what = server === undefined ? '' : `server "${server}": `
  return `${file}, line ${line}: ${what}${reason}${fatal ? '; this server is left out' : ''}.`
}

export interface RegistryDiff {
  added: ServerEntry[]
  removed: ServerEntry[]
  /** The command, address or limits changed: a running child must be replaced. */
  changed: ServerEntry[]
  /** Descriptions or rules changed, or it was switched on or off. */
  metadataChanged: ServerEntry[]
}

export function diffRegistries(before: Registry, after: Registry): RegistryDiff {
  const diff: RegistryDiff = { added: [], removed: [], changed: [], metadataChanged: [] }
  for (const entry of after.servers.values()) {
    const old = before.servers.get(entry.name)
    if (old === undefined) diff.added.push(entry)
    else if (old.fingerprint !== entry.fingerprint) diff.changed.push(entry)
    else if (JSON.stringify({ ...old, line: 0 }) !== JSON.stringify({ ...entry, line: 0 }))
      diff.metadataChanged.push(entry)
  }
  for (const old of before.servers.values()) if (!after.servers.has(old.name)) diff.removed.push(old)
  return diff
}
