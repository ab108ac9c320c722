/**
 * Decides which entries of the registry get their secrets: those that a person added or accepted, word for word. Owns the record of
 * accepted entries, a file where no server can write: in the data folder that the person named, else in the user's own. Invariant: an entry that anyone else added or changed in
 * the file gets no secret. For a registry without a record (a new one, or one from before an upgrade), all current entries count as
 * accepted, once, unless it was only found in the working folder.
 */
import { createHash } from 'node:crypto'
import { readFileSync, realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { AppError, hasCode, messageOf } from '../lib/errors.ts'
import { isRecord } from '../lib/is-record.ts'
import { editFile } from './edit-file.ts'
import { hasPlaceholder } from './placeholders.ts'
import { type ServerEntry, valuesOf } from './server-entry.ts'

/** By registry file, then by server: the hash of the accepted entry. */
type Accepted = Record<string, Record<string, string>>

export interface Grants {
  /** Whether the entry uses secrets, and nobody has accepted it in its current form. */
  isWaiting(entry: ServerEntry): boolean
  /** Throws if `isWaiting` is true. */
  check(entry: ServerEntry): void
  /** Records entries that a person was shown and accepted. `present` are the entries that the registry had before. */
  accept(entries: Iterable<ServerEntry>, present?: Iterable<ServerEntry>): Promise<void>
  /**
   * Accepts these entries if there is no record of this registry yet and the person named it. Resolves to the names of those that use
   * secrets.
   */
  begin(present: Iterable<ServerEntry>): Promise<string[]>
}

/** The settings that matter here. */
interface GrantsSettings {
  DATA_DIR: string
  MCP_CONFIG: string
  /** If set, nothing is accepted without a person, not even at the first start. */
  registryIsFound?: boolean
  /** Defaults to DATA_DIR. */
  grantsDir?: string
}

export function grantsFile({ DATA_DIR, grantsDir = DATA_DIR }: Pick<GrantsSettings, 'DATA_DIR' | 'grantsDir'>): string {
  return join(resolve(grantsDir), 'grants.json')
}

export function openGrants({ MCP_CONFIG, registryIsFound = false, ...folders }: GrantsSettings): Grants {
  const file = grantsFile(folders)
  const registry = registryKey(MCP_CONFIG)
  const recorded = () => own(readAccepted(file, readText(file)), registry)
  let needsRecord = registryIsFound
  const isWaiting = (entry: ServerEntry) => {
    if (!usesSecrets(entry)) return false
    const accepted = recorded()
    return accepted === undefined ? needsRecord : own(accepted, entry.name) !== grantHash(entry)
  }
  const write = (edit: (accepted: Record<string, string> | undefined) => Record<string, string>) =>
    editFile(file, (before) => {
      const all = readAccepted(file, before)
      return `${JSON.stringify({ ...all, [registry]: edit(own(all, registry)) }, null, 2)}\n`
    })
  return {
    isWaiting,
    check(entry) {
      if (isWaiting(entry)) throw notGranted(entry.name)
    },
    async accept(entries, present = []) {
      const added = [...entries].filter(usesSecrets)
      const earlier = needsRecord ? {} : hashes(present)
      if (added.length > 0) await write((accepted) => ({ ...(accepted ?? earlier), ...hashes(added) }))
    },
    async begin(present) {
      let first: Record<string, string> = {}
      if (!needsRecord && recorded() === undefined) {
        await write((accepted) => {
          first = accepted ? {} : hashes(present)
          return accepted ?? first
        })
      }
      // If the record is missing from now on, someone has removed it.
      needsRecord = true
      return Object.keys(first)
    }
  }
}

/** Covers everything that decides who gets the secrets. Limits and descriptions may change freely. */
export function grantHash(entry: ServerEntry): string {
  const what =
    entry.kind === 'local'
      ? [entry.command, entry.args, entry.env, entry.cwd ?? null, entry.sandbox ?? null]
      : [entry.url, entry.headers, entry.sse]
  return createHash('sha256')
    .update(JSON.stringify([entry.name, entry.kind, what]))
    .digest('hex')
}

function usesSecrets(entry: ServerEntry): boolean {
  return Object.values(valuesOf(entry)).some(hasPlaceholder)
}

function hashes(entries: Iterable<ServerEntry>): Record<string, string> {
  return Object.fromEntries([...entries].filter(usesSecrets).map((entry) => [entry.name, grantHash(entry)]))
}

/** Resolves links in the folder, so that the same file always has the same key. */
function registryKey(file: string): string {
  const path = resolve(file)
  try {
    return join(realpathSync(dirname(path)), basename(path))
  } catch {
    return path
  }
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw unreadable(file, messageOf(error))
  }
}

function readAccepted(file: string, text: string | undefined): Accepted {
  if (text === undefined) return {}
  try {
    const value: unknown = JSON.parse(text)
    if (isRecord(value) && Object.values(value).every(isHashes)) return value as Accepted
  } catch {
    // Invalid JSON is treated like any other invalid content.
  }
  throw unreadable(file, 'it is damaged')
}

function isHashes(value: unknown): boolean {
  return isRecord(value) && Object.values(value).every((hash) => typeof hash === 'string')
}

function own<T>(values: Record<string, T>, key: string): T | undefined {
  return Object.hasOwn(values, key) ? values[key] : undefined
}

function notGranted(name: string): AppError {
  const message = `The server "${name}" was added or changed in mcp.json by hand, so it gets no secrets until someone accepts it: under Servers in the page, or with: mcp-orchestrator servers accept ${shellWord(name)}`
  return new AppError('forbidden', 'secret_not_granted', message, { details: { permanent: true } })
}

/** Quoted for a shell if necessary. */
function shellWord(name: string): string {
  return /^[\w.@-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`
}

function unreadable(file: string, reason: string): AppError {
  const message = `The record of accepted servers, ${file}, can't be used (${reason}): restore it, or remove it and accept the servers again.`
  return new AppError('unavailable', 'grants_unreadable', message, { details: { permanent: true } })
}
