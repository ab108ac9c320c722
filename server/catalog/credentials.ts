import { readFileSync, statSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { AppError, messageOf } from '../lib/errors.ts'
import type { SecretSource } from './placeholders.ts'
import { isObject } from './read-entry.ts'

const MAX_BYTES = 1024 * 1024

export interface CredentialsOptions {
  file: string | undefined
  environment: Record<string, string | undefined>
}

/** Reads the file anew for every child, so that a rotated secret needs no restart. `secret:` looks there first, then outside. */
export function openSecrets({ file, environment }: CredentialsOptions): SecretSource {
  const stored = file === undefined ? {} : readCredentials(file)
  const env = (name: string) => (Object.hasOwn(environment, name) ? environment[name] : undefined)
  return { env, secret: (name) => (Object.hasOwn(stored, name) ? stored[name] : env(name)) }
}

function readCredentials(file: string): Record<string, string> {
  let text: string
  try {
    const { mode, size } = statSync(file)
    if (process.platform !== 'win32' && (mode & 0o077) !== 0) throw exposed(file)
    if (size > MAX_BYTES) throw unreadable(file, `it is larger than ${MAX_BYTES} bytes`)
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw error instanceof AppError ? error : unreadable(file, messageOf(error), error)
  }
  return text.trimStart().startsWith('{') ? readJson(file, text) : definedOnly(parseEnv(text))
}

function readJson(file: string, text: string): Record<string, string> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // The parser's own words would quote the file.
    throw unreadable(file, 'it is no valid JSON')
  }
  if (!isObject(value) || Object.values(value).some((item) => typeof item !== 'string')) {
    throw unreadable(file, 'it must be one JSON object of texts')
  }
  return definedOnly(value)
}

function definedOnly(values: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).flatMap(([key, value]) => (typeof value === 'string' ? [[key, value]] : []))
  )
}

function exposed(file: string): AppError {
  return new AppError(
    'forbidden',
    'credentials_exposed',
    `Others on this machine can read the credentials file ${file}: run chmod 600 on it first.`
  )
}

function unreadable(file: string, reason: string, cause?: unknown): AppError {
  const message = `The credentials file ${file} can't be used: ${reason}.`
  return new AppError('invalid', 'credentials_unreadable', message, { cause })
}
