/** The checks of `doctor` for each server in the registry. They start servers only with `--servers`. */

import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { openEngine } from '../../app/engine/open-engine.ts'
import { LOCAL_OWNER } from '../../calls/caller.ts'
import { openCredentials } from '../../catalog/credentials.ts'
import { openGrants } from '../../catalog/grants.ts'
import { refuseForeignPlaceholders } from '../../catalog/import/foreign-placeholders.ts'
import { maskUrl } from '../../catalog/literal-secrets.ts'
import { fillPlaceholders } from '../../catalog/placeholders.ts'
import { describeProblem, loadRegistry } from '../../catalog/registry.ts'
import { type LocalEntry, type RemoteEntry, type ServerEntry, valuesOf } from '../../catalog/server-entry.ts'
import { OUR_SECRETS, type Settings } from '../../config/settings.ts'
import { messageOf } from '../../lib/errors.ts'
import { findCommand } from '../../lib/files/find-command.ts'
import { createLogger } from '../../lib/logger.ts'
import { plural } from '../../lib/plural.ts'
import { openQuietGateway } from '../quiet-gateway.ts'

/** The result of a check. `warn`: it works, but the user should know. */
export type Found = string | { warn: string }
export type Check = (part: string, job: () => Promise<Found>) => Promise<boolean>

const REACH_MS = 5000

export async function checkServers(settings: Settings, check: Check, wantsStart: boolean): Promise<void> {
  const file = resolve(settings.MCP_CONFIG)
  const registry = await loadRegistry(file, { optional: true }).catch((error: unknown) => messageOf(error))
  if (typeof registry === 'string') {
    await check('servers', () => Promise.reject(new Error(registry)))
    return
  }
  const { servers, problems } = registry
  if (servers.size + problems.length === 0) await check('servers', async () => `none in ${file}`)
  for (const problem of problems.filter(({ fatal }) => fatal)) {
    await check('server', () => Promise.reject(new Error(describeProblem(file, problem))))
  }
  const start = wantsStart ? await startable(settings) : undefined
  for (const entry of servers.values()) {
    await check('server', async () => `${entry.name}: ${await describeServer(settings, entry, start?.tools)}`)
  }
  await start?.stop()
}

type Tools = (server: string) => Promise<number>

async function describeServer(settings: Settings, entry: ServerEntry, tools: Tools | undefined): Promise<string> {
  if (!entry.enabled) return 'switched off'
  const credentials = { file: settings.CREDENTIALS_FILE, environment: process.env, ours: OUR_SECRETS }
  const secrets = openCredentials(credentials).source(LOCAL_OWNER)
  fillPlaceholders(entry.name, valuesOf(entry), secrets, entry.kind === 'local' ? 'env' : 'headers')
  refuseForeignPlaceholders(entry)
  openGrants(settings).check(entry)
  const found = entry.kind === 'local' ? await describeLocal(settings, entry) : await describeRemote(entry)
  return tools ? `${found}; ${plural(await tools(entry.name), 'tool')}` : found
}

async function describeLocal(settings: Settings, { name, command, cwd, env, sandbox }: LocalEntry): Promise<string> {
  if (sandbox) {
    const image = sandbox.image ?? settings.SANDBOX_IMAGE
    const engine = await openEngine({ ...settings, SANDBOX_IMAGE: image }, createLogger('silent'))
    try {
      if (await engine.hasImage()) return `runs in a sandbox; its image (${image ?? 'the default one'}) is ready`
    } finally {
      await engine.close()
    }
    const make = image === undefined ? 'npm run setup' : `SANDBOX_IMAGE=${image} npm run setup`
    const what = image === undefined ? 'the sandbox image' : `a sandbox image based on ${image}`
    throw new Error(`"${name}" needs ${what}, which is not built yet: its first start builds it, or run ${make}.`)
  }
  if (cwd !== undefined && !statSync(cwd, { throwIfNoEntry: false })?.isDirectory()) {
    throw new Error(`The working folder of "${name}" does not exist: create ${cwd}, or correct "cwd" in mcp.json.`)
  }
  const path = env.PATH ?? process.env.PATH ?? ''
  const found = findCommand(command, { path, cwd })
  if (found) return found
  throw new Error(
    `"${name}" needs the command "${command}", which is not on the PATH: install it, or correct mcp.json.`
  )
}

/** Any answer shows that the server can be reached, even an HTTP error. */
async function describeRemote({ name, url }: RemoteEntry): Promise<string> {
  const shown = maskUrl(url)
  try {
    const response = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(REACH_MS) })
    await response.body?.cancel()
    return `${shown} answers (${response.status})`
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
    throw new Error(`"${name}" can't be reached at ${shown}: ${messageOf(cause)}.`)
  }
}

async function startable(settings: Settings) {
  const app = await openQuietGateway(settings)
  const caller = { owner: LOCAL_OWNER, door: 'stdio' } as const
  const tools: Tools = async (server) => {
    const { connections } = await app.core()
    const { length } = await connections.test(server, { caller, signal: new AbortController().signal })
    if (length > 0) return length
    throw new Error(`"${server}" runs, but has no tools.`)
  }
  return { tools, stop: app.stop }
}
