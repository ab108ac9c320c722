import { statSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { AppError, messageOf } from '../lib/errors.ts'
import { readSmallFile } from '../lib/files/read-small-file.ts'
import { isRecord } from '../lib/is-record.ts'
import type { SecretSource } from './placeholders.ts'

const MAX_BYTES = 1024 * 1024

export interface CredentialsOptions {
  file: string | undefined
  environment: Record<string, string | undefined>
  /** The names of our own secret settings. Servers don't get them from the environment. */
  ours: readonly string[]
}

export interface Credentials {
  /** Fills placeholders with the owner's own values first, or without an owner, with the shared ones. */
  source(owner?: string): SecretSource
  /** The key of a model provider that an administrator has entered. `name` begins with MODEL_KEY. */
  modelKey(name: string): string | undefined
  /** Whether this owner has a value of their own for one of these secrets. */
  differsFor(owner: string, names: string[]): boolean
}

/** Names that begin with this are not for MCP servers. */
export const MODEL_KEY = 'MODEL_KEY_'

interface Stored {
  common: Record<string, string>
  owners: Record<string, Record<string, string>>
}

const NOTHING: Stored = { common: {}, owners: {} }

/**
 * Reads the file again whenever it has changed, so that a rotated secret needs no restart. `secret:` uses the file first, then the
 * environment.
 */
export function openCredentials({ file, environment, ours }: CredentialsOptions): Credentials {
  const read = file === undefined ? () => NOTHING : credentialsReader(file)
  const isOurs = (name: string) => ours.includes(name)
  const env = (name: string) => (isOurs(name) ? undefined : own(environment, name))
  return {
    source(owner) {
      const { common, owners } = read()
      const theirs = owner === undefined ? undefined : own(owners, owner)
      const secret = (name: string) => (theirs && own(theirs, name)) ?? own(common, name) ?? env(name)
      return { isOurs, env, secret: (name) => (name.startsWith(MODEL_KEY) ? undefined : secret(name)) }
    },
    modelKey: (name) => own(read().common, name),
    differsFor(owner, names) {
      const theirs = names.length === 0 ? undefined : own(read().owners, owner)
      return theirs !== undefined && names.some((name) => Object.hasOwn(theirs, name))
    }
  }
}

function own<T>(values: Record<string, T>, name: string): T | undefined {
  return Object.hasOwn(values, name) ? values[name] : undefined
}

/** Called before every call, so an unchanged file is not read again. */
function credentialsReader(file: string): () => Stored {
  let seen = ''
  let stored = NOTHING
  return () => {
    try {
      const { mode, size, mtimeMs, ctimeMs, ino } = statSync(file)
      if (process.platform !== 'win32' && (mode & 0o077) !== 0) throw exposed(file)
      const state = [ino, size, mtimeMs, ctimeMs].join()
      if (state !== seen) stored = readCredentials(file, readSmallFile(file, MAX_BYTES))
      seen = state
      return stored
    } catch (error) {
      throw error instanceof AppError ? error : unreadable(file, messageOf(error), error)
    }
  }
}

function readCredentials(file: string, text: string): Stored {
  if (!text.trimStart().startsWith('{')) return { common: onlyTexts(parseLines(file, text)), owners: {} }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // The parser's message would quote the file.
    throw unreadable(file, 'it is no valid JSON')
  }
  if (!isRecord(value)) throw unreadable(file, 'it must be one JSON object of texts')
  const { owners = {}, ...common } = value
  if (!isRecord(owners) || !Object.values(owners).every(isTexts)) {
    throw unreadable(file, '"owners" must be an object with an object of texts for each owner')
  }
  if (!isTexts(common)) throw unreadable(file, 'it must be one JSON object of texts')
  return {
    common: onlyTexts(common),
    owners: Object.fromEntries(
      Object.entries(owners).map(([owner, values]) => [owner, onlyTexts({ ...Object(values) })])
    )
  }
}

interface CredentialLine {
  text: string
  /** undefined for an empty line or a comment. */
  name?: string | undefined
}

/** Splits a file into its lines; a quoted value may span several. `wrong` is the number of the first line that can't be read. */
export function linesOf(text: string): { lines: CredentialLine[]; wrong?: number } {
  const line =
    /[^\S\n]*(?:#[^\n]*)?(?:\n|$)|[^\S\n]*(?:export\s+)?(?<name>[\w.-]+)[^\S\n]*=[^\S\n]*(?:(?<quote>['"`])(?:(?!\k<quote>)[\s\S])*\k<quote>[^\S\n]*(?:#[^\n]*)?|[^'"`\s][^\n]*|)(?:\n|$)/y
  const lines: CredentialLine[] = []
  while (line.lastIndex < text.length) {
    const at = line.lastIndex
    const found = line.exec(text)
    if (!found) return { lines, wrong: text.slice(0, at).split('\n').length }
    lines.push({ text: found[0], name: found.groups?.name })
  }
  return { lines }
}

/** `parseEnv` skips or cuts lines that it can't read, and a server would get only a part of its secret. Such a file is refused. */
function parseLines(file: string, text: string): Record<string, unknown> {
  const { wrong } = linesOf(text)
  if (wrong === undefined) return parseEnv(text)
  throw unreadable(file, `line ${wrong} is not NAME='value'; put a value that has a ' in it between other quotes`)
}

function isTexts(value: unknown): boolean {
  return isRecord(value) && Object.values(value).every((item) => typeof item === 'string')
}

function onlyTexts(values: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).flatMap(([key, value]) => (typeof value === 'string' ? [[key, value]] : []))
  )
}

function exposed(file: string): AppError {
  return new AppError(
    'forbidden',
    'credentials_exposed',
    `Others on this machine can read the credentials file ${file}: run chmod 600 on it first.`,
    { details: { permanent: true } }
  )
}

function unreadable(file: string, reason: string, cause?: unknown): AppError {
  const message = `The credentials file ${file} can't be used: ${reason}.`
  return new AppError('invalid', 'credentials_unreadable', message, { cause, details: { permanent: true } })
}
