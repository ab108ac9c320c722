import { lstatSync } from 'node:fs'
import { isIP } from 'node:net'
import { resolve } from 'node:path'
import { parseEnv } from 'node:util'
import { AppError, hasCode, messageOf } from '../lib/errors.ts'
import { readSmallFile } from '../lib/files/read-small-file.ts'
import { flagOf, SETTINGS, type SettingName, type Settings } from './settings.ts'
import { userDefaults } from './user-folders.ts'

const MAX_DOTENV_BYTES = 1024 * 1024

export interface SettingSources {
  /** By flag name, without dashes. */
  flags?: Record<string, string | undefined>
  env: Record<string, string | undefined>
  /** Text of a `.env` file. */
  dotenv?: string
  /** Defaults of a command that differ from the usual ones. */
  defaults?: Partial<Record<SettingName, string>>
}

/** Flags take precedence over the environment, and the environment over `.env`. Throws an error that names the invalid setting. */
export function loadSettings({ flags = {}, env, dotenv = '', defaults = {} }: SettingSources): Settings {
  const file = parseEnv(dotenv)
  const values: Record<string, unknown> = {}
  for (const name of Object.keys(SETTINGS) as SettingName[]) {
    const flag = flagOf(name)
    const fromFlag = flag === undefined ? undefined : flags[flag]
    // An empty path would mean the current folder.
    if (fromFlag === '') throw new AppError('invalid', 'invalid_setting', `--${flag} needs a value.`)
    // An empty variable is how shells and compose files say "not set".
    const given = fromFlag ?? (env[name] || file[name] || defaults[name] || undefined)
    const { parse, fallback }: { parse: (text: string, name: string) => unknown; fallback?: unknown } = SETTINGS[name]
    values[name] = given === undefined ? fallback : parse(given, fromFlag === undefined ? name : `--${flag}`)
  }
  const isFound = (name: 'MCP_CONFIG' | 'DATA_DIR') =>
    !isNamed(name, { flags, env }) && resolve(String(values[name])) !== userDefaults(env)[name]
  const registryIsFound = isFound('MCP_CONFIG')
  const grantsDir = isFound('DATA_DIR') ? { grantsDir: userDefaults(env).DATA_DIR } : {}
  const kubeconfigIsFound = values.KUBECONFIG !== undefined && !isNamed('KUBECONFIG', { flags, env })
  const settings = { ...values, registryIsFound, ...grantsDir, kubeconfigIsFound } as Settings
  checkTogether(settings)
  return settings
}

/** Whether the user set it. */
export function isNamed(name: SettingName, { flags = {}, env, dotenv = '' }: SettingSources): boolean {
  const flag = flagOf(name)
  return Boolean((flag !== undefined && flags[flag]) || env[name] || parseEnv(dotenv)[name])
}

export function readDotenv(path = '.env'): string {
  try {
    return readSmallFile(path, MAX_DOTENV_BYTES, { anyKind: true }).replace(/^\uFEFF/, '')
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'EISDIR') || isOutOfSight(path)) return ''
    // It may contain AUTH_TOKEN, so don't start without it.
    const message = `${resolve(path)} can't be read (${messageOf(error)}): let this user read it, or start in another folder.`
    throw new AppError('invalid', 'invalid_setting', message, { cause: error })
  }
}

/** The path of the `.env` file if it contains a secret setting, so that servers must not read it. */
export function dotenvWithSecrets(path = '.env'): string | undefined {
  const given = parseEnv(readDotenv(path))
  const names = (Object.keys(SETTINGS) as SettingName[]).filter((name) => flagOf(name) === undefined)
  return names.some((name) => given[name]) ? resolve(path) : undefined
}

/** Whether the folder is closed to this user, as with `sudo -u` in another user's home. The file is then not meant for them. */
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
  checkToken('SECRETS_KEY', settings.SECRETS_KEY)
  checkToken('SECRETS_KEY_BEFORE', settings.SECRETS_KEY_BEFORE)
  if (settings.ADMIN_TOKEN && settings.ADMIN_TOKEN === settings.AUTH_TOKEN) {
    const message = 'ADMIN_TOKEN must differ from AUTH_TOKEN, which everyone who uses this instance has.'
    throw new AppError('invalid', 'invalid_setting', message)
  }
  if (settings.APPROVAL_MODE !== 'ask' && settings.SANDBOX_NETWORK !== 'none') {
    const message = `APPROVAL_MODE is "${settings.APPROVAL_MODE}", which needs SANDBOX_NETWORK none: what a command does in a network can't be discarded.`
    throw new AppError('invalid', 'invalid_setting', message)
  }
  if (Boolean(settings.AWS_ACCESS_KEY_ID) !== Boolean(settings.AWS_SECRET_ACCESS_KEY) && settings.CHECKPOINT_STORE) {
    const message = 'AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY belong together: set both, or neither.'
    throw new AppError('invalid', 'invalid_setting', message)
  }
  checkKubernetes(settings)
  const { EMBEDDING_MODEL: embedding, OPENAI_API_KEY: key, OPENAI_COMPATIBLE_BASE_URL: server } = settings
  const lacking = embedding?.startsWith('openai/')
    ? !key && 'OPENAI_API_KEY'
    : embedding?.startsWith('openai-compatible/') && !server && 'OPENAI_COMPATIBLE_BASE_URL'
  if (lacking) {
    throw new AppError('invalid', 'invalid_setting', `EMBEDDING_MODEL is "${embedding}": set ${lacking} too.`)
  }
}

function checkKubernetes(settings: Settings): void {
  const { KUBERNETES_IMAGE, SANDBOX_IMAGE, SANDBOX_NETWORK } = settings
  if (settings.SANDBOX_ENGINE !== 'kubernetes') return
  const refuse = (why: string) => new AppError('invalid', 'invalid_setting', `SANDBOX_ENGINE is kubernetes: ${why}`)
  if (SANDBOX_IMAGE) throw refuse('a cluster builds no image from SANDBOX_IMAGE; set KUBERNETES_IMAGE instead.')
  if (!KUBERNETES_IMAGE) throw refuse('set KUBERNETES_IMAGE to the sandbox image (docs/guides/kubernetes.md).')
  if (SANDBOX_NETWORK !== 'none')
    throw refuse('SANDBOX_NETWORK must be none: network policies of the cluster block the network.')
}

function checkToken(name: SettingName, token: string | undefined): void {
  if (token === undefined) return
  if (token.length < 16) throw new AppError('invalid', 'invalid_setting', `${name} must have at least 16 characters.`)
  // `.env` does not run commands. The literal text of a documented command would be a token that everyone knows.
  if (/\$[({]/.test(token)) {
    const message = `${name} contains a shell expression, which is not executed: write its result instead.`
    throw new AppError('invalid', 'invalid_setting', message)
  }
}

function isLoopback(host: string): boolean {
  if (host === 'localhost' || host === '::1') return true
  return isIP(host) === 4 && host.startsWith('127.')
}
