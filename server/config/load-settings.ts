import { lstatSync, readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { resolve } from 'node:path'
import { parseEnv } from 'node:util'
import { AppError, messageOf } from '../lib/errors.ts'
import { flagOf, SETTINGS, type SettingName, type Settings } from './settings.ts'

export interface SettingSources {
  /** By flag name, without dashes. */
  flags?: Record<string, string | undefined>
  env: Record<string, string | undefined>
  /** Text of a `.env` file. */
  dotenv?: string
  /** In place of the usual ones, for a command that has others. */
  defaults?: Partial<Record<SettingName, string>>
}

/** Flags win over the environment, the environment over `.env`. Throws a sentence that names the setting. */
export function loadSettings({ flags = {}, env, dotenv = '', defaults = {} }: SettingSources): Settings {
  const file = parseEnv(dotenv)
  const values: Record<string, unknown> = {}
  for (const name of Object.keys(SETTINGS) as SettingName[]) {
    const flag = flagOf(name)
    const fromFlag = flag === undefined ? undefined : flags[flag]
    // An empty path would be this folder.
    if (fromFlag === '') throw new AppError('invalid', 'invalid_setting', `--${flag} needs a value.`)
    // An empty variable is how shells and compose files say "not set".
    const given = fromFlag ?? (env[name] || file[name] || defaults[name] || undefined)
    const { parse, fallback }: { parse: (text: string, name: string) => unknown; fallback?: unknown } = SETTINGS[name]
    values[name] = given === undefined ? fallback : parse(given, fromFlag === undefined ? name : `--${flag}`)
  }
  const settings = values as Settings
  checkTogether(settings)
  return settings
}

/** Whether it was given at all, rather than left to its default. */
export function isNamed(name: SettingName, { flags = {}, env, dotenv = '' }: SettingSources): boolean {
  const flag = flagOf(name)
  return Boolean((flag !== undefined && flags[flag]) || env[name] || parseEnv(dotenv)[name])
}

export function readDotenv(path = '.env'): string {
  try {
    return readFileSync(path, 'utf8').replace(/^\uFEFF/, '')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'ENOENT' || code === 'EISDIR' || isOutOfSight(path)) return ''
    // Going on without it might be going on without its AUTH_TOKEN.
    const message = `${resolve(path)} can't be read (${messageOf(error)}): let this user read it, or start elsewhere.`
    throw new AppError('invalid', 'invalid_setting', message, { cause: error })
  }
}

/** The `.env` that settings are read from, where it holds a secret of ours: then servers must not read it. */
export function dotenvWithSecrets(path = '.env'): string | undefined {
  const given = parseEnv(readDotenv(path))
  const names = (Object.keys(SETTINGS) as SettingName[]).filter((name) => flagOf(name) === undefined)
  return names.some((name) => given[name]) ? resolve(path) : undefined
}

/** In a folder that this user may not look into, as with `sudo -u` in someone's home: whatever is there is not meant for them. */
function isOutOfSight(path: string): boolean {
  try {
    lstatSync(path)
    return false
  } catch {
    return true
  }
}

function checkTogether(settings: Settings): void {
  if (!isLoopback(settings.HOST) && !settings.AUTH_TOKEN) {
    const message = `HOST is ${settings.HOST}, which others can reach: set AUTH_TOKEN too, or leave HOST at 127.0.0.1.`
    throw new AppError('invalid', 'invalid_setting', message)
  }
  checkToken('AUTH_TOKEN', settings.AUTH_TOKEN)
  checkToken('ADMIN_TOKEN', settings.ADMIN_TOKEN)
  if (settings.ADMIN_TOKEN && settings.ADMIN_TOKEN === settings.AUTH_TOKEN) {
    const message = 'ADMIN_TOKEN must differ from AUTH_TOKEN: everyone who may use this instance has that one.'
    throw new AppError('invalid', 'invalid_setting', message)
  }
  const { EMBEDDING_MODEL: embedding, OPENAI_API_KEY: key, OPENAI_COMPATIBLE_BASE_URL: server } = settings
  const lacking = embedding?.startsWith('openai/')
    ? !key && 'OPENAI_API_KEY'
    : embedding && !server && 'OPENAI_COMPATIBLE_BASE_URL'
  if (lacking) {
    throw new AppError('invalid', 'invalid_setting', `EMBEDDING_MODEL is "${embedding}": set ${lacking} too.`)
  }
}

function checkToken(name: SettingName, token: string | undefined): void {
  if (token === undefined) return
  if (token.length < 16) throw new AppError('invalid', 'invalid_setting', `${name} must have at least 16 characters.`)
  // A command pasted into .env is not run: everyone who has read the instructions would know the token.
  if (/\$[({]/.test(token)) {
    const message = `${name} holds a shell expression that nobody has run: put its result there.`
    throw new AppError('invalid', 'invalid_setting', message)
  }
}

function isLoopback(host: string): boolean {
  if (host === 'localhost' || host === '::1') return true
  return isIP(host) === 4 && host.startsWith('127.')
}
