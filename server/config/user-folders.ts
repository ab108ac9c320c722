import { statSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import type { SettingName, Settings } from './settings.ts'

type Environment = Record<string, string | undefined>

/** A container may run as an unknown user without a home. Errors about missing files below `/` are then reported later. */
export function userHome(env: Environment, homeOf = homedir): string {
  try {
    return env.HOME || homeOf()
  } catch {
    return '/'
  }
}

/** The XDG folders for settings and state. */
export function userFolders(env: Environment): { config: string; data: string } {
  const home = userHome(env)
  const under = (base: string | undefined, fallback: string) =>
    join(base?.startsWith('/') ? base : join(home, fallback), 'mcp-orchestrator')
  return { config: under(env.XDG_CONFIG_HOME, '.config'), data: under(env.XDG_DATA_HOME, '.local/share') }
}

export function userDefaults(env: Environment): { MCP_CONFIG: string; DATA_DIR: string } {
  const { config, data } = userFolders(env)
  return { MCP_CONFIG: join(config, 'mcp.json'), DATA_DIR: data }
}

/** The user's credentials file is the default of CREDENTIALS_FILE if it is there and nobody else can read it. */
export function credentialsDefault(env: Environment): { CREDENTIALS_FILE?: string } {
  const file = userCredentials(env)
  try {
    const { mode, uid } = statSync(file)
    return (mode & 0o077) === 0 && uid === process.getuid?.() ? { CREDENTIALS_FILE: file } : {}
  } catch {
    return {}
  }
}

/** Where the CLI creates the credentials file if CREDENTIALS_FILE is not set. */
export function userCredentials(env: Environment): string {
  return join(userFolders(env).config, 'credentials')
}

/** Prints the file and folder that a command uses by default, because they depend on the current folder. */
export function sayWhatIsUsed(
  { MCP_CONFIG, DATA_DIR }: Pick<Settings, 'MCP_CONFIG' | 'DATA_DIR'>,
  isNamed: (setting: SettingName) => boolean
): void {
  const used = [
    ...(isNamed('MCP_CONFIG') ? [] : [resolve(MCP_CONFIG)]),
    ...(isNamed('DATA_DIR') ? [] : [`data in ${resolve(DATA_DIR)}`])
  ]
  if (used.length > 0) process.stderr.write(`Using ${used.join(', ')}.\n`)
}
