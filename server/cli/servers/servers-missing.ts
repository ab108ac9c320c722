import { resolve } from 'node:path'
import { LOCAL_OWNER } from '../../calls/caller.ts'
import { openCredentials } from '../../catalog/credentials.ts'
import { type MissingValue, missingValues } from '../../catalog/import/missing-values.ts'
import type { SecretSource } from '../../catalog/placeholders.ts'
import type { ServerEntry } from '../../catalog/server-entry.ts'
import { OUR_SECRETS } from '../../config/settings.ts'
import { userCredentials, userDefaults } from '../../config/user-folders.ts'
import { showName } from '../../gateway/asking/show-as-data.ts'
import type { ServersContext } from './servers-context.ts'

/** The values that these servers need and that are missing, as far as the credentials file can be read. */
export function missingOf(entries: ServerEntry[], { settings }: ServersContext): MissingValue[] {
  return missingValues(entries, secretsOf(settings.CREDENTIALS_FILE))
}

/** Those of the credentials file, as far as it can be read, and of the environment. */
export function secretsOf(file: string | undefined): SecretSource {
  const environment = { environment: process.env, ours: OUR_SECRETS }
  try {
    return openCredentials({ file, ...environment }).source(LOCAL_OWNER)
  } catch {
    // The error is reported when a server needs the file.
    return openCredentials({ file: undefined, ...environment }).source(LOCAL_OWNER)
  }
}

/** Shows a command for each missing secret. */
export function describeMissing(missing: MissingValue[], credentialsFile: string | undefined): string[] {
  const named = ({ name, servers }: MissingValue) => `${name} (for ${servers.map(showName).join(', ')})`
  const secrets = missing.filter(({ kind }) => kind === 'secret')
  const variables = missing.filter(({ kind }) => kind === 'env')
  const usual = [process.env.CREDENTIALS_FILE, userCredentials(process.env)]
  const isUsual = credentialsFile === undefined || usual.includes(credentialsFile)
  const where = isUsual ? '' : ` --credentials-file ${quote(resolve(credentialsFile))}`
  const lines: string[] = []
  if (secrets.length > 0) {
    lines.push(
      `These secrets are missing: ${secrets.map(named).join(', ')}. Store them with these commands, which ask for the value:`,
      ...secrets.map(({ name }) => `    mcp-orchestrator servers secret ${name}${where}`)
    )
  }
  if (variables.length > 0)
    lines.push(
      `These variables are not set: ${variables.map(named).join(', ')}. Set them where the gateway is started, for example under "env" in the client's entry, or replace \${env:NAME} by \${secret:NAME} in mcp.json.`
    )
  return lines
}

/** The command that tests them. It names the file, unless that is the one that is read without being named. */
export function testCommand(names: string[], file: string): string {
  const usual = [process.env.MCP_CONFIG, userDefaults(process.env).MCP_CONFIG, 'mcp.json']
  const isUsual = usual.some((each) => each !== undefined && resolve(each) === resolve(file))
  return ['mcp-orchestrator servers test', ...names.map(quote), ...(isUsual ? [] : ['--config', quote(file)])].join(' ')
}

/** Quotes a word for a shell. */
function quote(path: string): string {
  return /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`
}
