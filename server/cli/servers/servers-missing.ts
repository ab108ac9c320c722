import { dirname, join, resolve } from 'node:path'
import { LOCAL_OWNER } from '../../calls/caller.ts'
import { openCredentials } from '../../catalog/credentials.ts'
import { type MissingValue, missingValues } from '../../catalog/import/missing-values.ts'
import type { SecretSource } from '../../catalog/placeholders.ts'
import type { ServerEntry } from '../../catalog/server-entry.ts'
import { showName } from '../../gateway/asking/show-as-data.ts'
import { userHome } from '../user-folders.ts'
import type { ServersContext } from './servers-context.ts'

/** The values that these servers need and that are missing, as far as the credentials file can be read. */
export function missingOf(entries: ServerEntry[], { settings }: ServersContext): MissingValue[] {
  return missingValues(entries, secretsOf(settings.CREDENTIALS_FILE))
}

function secretsOf(file: string | undefined): SecretSource {
  try {
    return openCredentials({ file, environment: process.env }).source(LOCAL_OWNER)
  } catch {
    // The error is reported when a server needs the file.
    return openCredentials({ file: undefined, environment: process.env }).source(LOCAL_OWNER)
  }
}

/** Shows a command for each missing value that keeps the value out of the shell history. */
export function describeMissing(missing: MissingValue[], credentialsFile: string | undefined): string[] {
  const named = ({ name, servers }: MissingValue) => `${name} (for ${servers.map(showName).join(', ')})`
  const secrets = missing.filter(({ kind }) => kind === 'secret')
  const variables = missing.filter(({ kind }) => kind === 'env')
  const file = resolve(credentialsFile ?? join(userHome(process.env), '.config/mcp-orchestrator/credentials'))
  const quoted = quote(file)
  const lines: string[] = []
  if (secrets.length > 0) {
    lines.push(`These secrets are missing: ${secrets.map(named).join(', ')}. In bash, for each of them:`)
    if (credentialsFile === undefined)
      lines.push(`    (umask 077; mkdir -p ${quote(dirname(file))} && touch ${quoted})`)
    for (const { name } of secrets)
      lines.push(`    read -rsp '${name}: ' value && printf "%s='%s'\\n" '${name}' "$value" >> ${quoted}`)
    if (credentialsFile === undefined)
      lines.push(`and set CREDENTIALS_FILE=${file} for the gateway: in the client under "env", for serve in .env.`)
  }
  if (variables.length > 0)
    lines.push(
      `These variables are not set: ${variables.map(named).join(', ')}. Set them where the gateway is started, for example under "env" in the client's entry, or replace \${env:NAME} by \${secret:NAME} in mcp.json.`
    )
  return lines
}

/** Quotes a path for a shell. */
function quote(path: string): string {
  return `'${path.replaceAll("'", `'\\''`)}'`
}
