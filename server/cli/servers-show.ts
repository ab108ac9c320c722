import { join, resolve } from 'node:path'
import { createGatewayApp } from '../app-gateway.ts'
import { describeTarget } from '../catalog/describe-target.ts'
import { openGrants } from '../catalog/grants.ts'
import type { ServerEntry } from '../catalog/server-entry.ts'
import { dotenvWithSecrets } from '../config/load-settings.ts'
import type { GatewayCore } from '../gateway/gateway-options.ts'
import { AppError, messageOf } from '../lib/errors.ts'
import { createLogger } from '../lib/logger.ts'
import { type Caller, LOCAL_OWNER } from '../tools/caller.ts'
import { readServerLog, serverLogFile } from '../tools/connections/server-log.ts'
import { chosen, oneName, print, type ServersContext } from './servers-context.ts'

const LOG_LINES = 200
const WAITING = 'gets its secrets after "servers accept"'
const caller: Caller = { owner: LOCAL_OWNER, door: 'stdio' }

export async function listServers(context: ServersContext): Promise<number> {
  const { registry, file } = context
  const grants = openGrants(context.settings.DATA_DIR, file)
  const rows = [...registry.servers.values()].map((entry) => ({
    name: entry.name,
    enabled: entry.enabled,
    kind: entry.kind,
    target: describeTarget(entry),
    ...(grants.isWaiting(entry) ? { waiting: true } : {}),
    ...(entry.description === undefined ? {} : { description: entry.description })
  }))
  const lines = rows.map(
    ({ name, enabled, target, waiting }) =>
      `${enabled ? 'on ' : 'off'} ${name.padEnd(24)} ${target}${waiting ? `  (${WAITING})` : ''}`
  )
  print(context, { file, servers: rows, problems: registry.problems }, lines.length > 0 ? lines : [noServers(context)])
  return registry.problems.some(({ fatal }) => fatal) ? 1 : 0
}

/** Starts each of them for real: its tools have to be there. */
export async function testServers(context: ServersContext): Promise<number> {
  const { names, registry } = context
  const entries = chosen(context)
  return withCore(context, async ({ connections }) => {
    const results = await Promise.all(entries.map((entry) => testServer(entry, connections)))
    print(context, results, results.length > 0 ? results.map(testedLine) : [noServers(context)])
    // What means nothing to us is most often a misspelling: this is the command that says so with its exit code.
    const isFlawless = names.length > 0 || registry.problems.length === 0
    return isFlawless && results.every(({ ok }) => ok) ? 0 : 1
  })
}

interface Tested {
  server: string
  /** False: it was not started, and that is no failure. */
  enabled: boolean
  ok: boolean
  ms: number
  tools?: string[]
  reason?: string
}

function testedLine({ server, enabled, ok, tools, reason }: Tested): string {
  if (!enabled) return `off   ${server}: it is switched off`
  return ok ? `ok    ${server}: ${tools?.length} tools` : `FAILS ${server}: ${reason}`
}

const noServers = ({ file }: ServersContext) => `${file} has no servers.`

async function testServer({ name, enabled }: ServerEntry, connections: GatewayCore['connections']): Promise<Tested> {
  const began = performance.now()
  const took = () => Math.round(performance.now() - began)
  if (!enabled) return { server: name, enabled, ok: true, ms: 0 }
  try {
    const tools = (await connections.list(name, { caller, signal: new AbortController().signal })).map(
      (tool) => tool.name
    )
    if (tools.length === 0) return { server: name, enabled, ok: false, ms: took(), reason: 'it runs, but has no tools' }
    return { server: name, enabled, ok: true, ms: took(), tools }
  } catch (error) {
    return { server: name, enabled, ok: false, ms: took(), reason: messageOf(error) }
  }
}

export async function showHealth(context: ServersContext): Promise<number> {
  const entries = chosen(context)
  return withCore(context, async ({ index, grants }) => {
    const rows = entries.map((entry) => {
      const { name, enabled } = entry
      const { seenAt = 0, tools = [], startMs, lastError, denied } = index.record(name) ?? {}
      const seen = seenAt > 0 ? { seenAt: new Date(seenAt).toISOString(), tools: tools.length, startMs } : {}
      const failure = lastError ? { lastError: lastError.message, failedAt: new Date(lastError.at).toISOString() } : {}
      const waiting = grants?.isWaiting(entry) ? { waiting: true } : {}
      return { server: name, enabled, ...waiting, ...seen, ...failure, ...(denied ? { denied } : {}) }
    })
    const lines = rows.map((row) => {
      const seen = 'seenAt' in row ? `${row.tools} tools, seen ${row.seenAt}` : 'never seen'
      const error = 'lastError' in row ? `; last error: ${row.lastError}` : ''
      const hosts = Object.entries(row.denied ?? {}).map(([host, { count }]) => `${host} (${count})`)
      const denied = hosts.length > 0 ? `; network refused: ${hosts.join(', ')}` : ''
      const waiting = 'waiting' in row ? `; ${WAITING}` : ''
      return `${row.server.padEnd(24)} ${row.enabled ? seen : 'off'}${waiting}${error}${denied}`
    })
    print(context, rows, lines.length > 0 ? lines : [noServers(context)])
    return rows.some((row) => row.enabled && 'lastError' in row) ? 1 : 0
  })
}

export async function showLogs(context: ServersContext): Promise<number> {
  const name = oneName(context)
  const dir = join(resolve(context.settings.DATA_DIR), 'server-logs')
  const file = serverLogFile(dir, name)
  const lines = await readServerLog(dir, name, LOG_LINES, LOCAL_OWNER)
  if (!lines) chosen(context)
  if (!lines) throw new AppError('not-found', 'no_log', `"${name}" has written nothing yet (${file}).`)
  print(context, { server: name, file, lines }, lines)
  return 0
}

export async function withCore(context: ServersContext, job: (core: GatewayCore) => Promise<number>): Promise<number> {
  const app = await createGatewayApp(context.settings, createLogger('silent'), {
    environment: process.env,
    optionalRegistry: true,
    dotenv: dotenvWithSecrets()
  })
  try {
    return await job(await app.core())
  } finally {
    await app.stop()
  }
}
