import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { terminalLine } from '../../../contract/hidden-characters.ts'
import { dataPaths } from '../../app/data-paths.ts'
import { type Caller, LOCAL_OWNER } from '../../calls/caller.ts'
import { maskedTarget } from '../../catalog/describe-target.ts'
import { openGrants } from '../../catalog/grants.ts'
import type { ServerEntry } from '../../catalog/server-entry.ts'
import { readServerLog, serverLogFile } from '../../connections/server-log.ts'
import type { GatewayServices } from '../../gateway/gateway-services.ts'
import { AppError, messageOf } from '../../lib/errors.ts'
import { plural } from '../../lib/plural.ts'
import { openQuietGateway } from '../quiet-gateway.ts'
import { chosen, oneName, print, type ServersContext } from './servers-context.ts'
import { describeNotes, type ToolNotes, toolNotes } from './servers-notes.ts'

const LOG_LINES = 200
const WAITING = 'gets its secrets after "servers accept"'
const caller: Caller = { owner: LOCAL_OWNER, door: 'stdio' }

export async function listServers(context: ServersContext): Promise<number> {
  const { registry, file } = context
  const grants = openGrants(context.settings)
  const notes = await storedNotes(context)
  const rows = [...registry.servers.values()].map((entry) => ({
    name: entry.name,
    enabled: entry.enabled,
    kind: entry.kind,
    target: maskedTarget(entry),
    ...(grants.isWaiting(entry) ? { waiting: true } : {}),
    ...(entry.description === undefined ? {} : { description: entry.description }),
    ...notes.get(entry.name)
  }))
  const lines = rows.flatMap(({ name, enabled, target, waiting, ...row }) => [
    `${enabled ? 'on ' : 'off'} ${name.padEnd(24)} ${target}${waiting ? `  (${WAITING})` : ''}`,
    ...describeNotes(name, row)
  ])
  print(context, { file, servers: rows, problems: registry.problems }, lines.length > 0 ? lines : [noServers(context)])
  return registry.problems.some(({ fatal }) => fatal) ? 1 : 0
}

/** Notes about all servers, as far as the store has any. If the store can't be opened, this is reported but is not a failure. */
async function storedNotes(context: ServersContext): Promise<Map<string, ToolNotes>> {
  const { settings, registry } = context
  const notes = new Map<string, ToolNotes>()
  if (!settings.REDIS_URL && !existsSync(join(resolve(settings.DATA_DIR), 'store.db'))) return notes
  try {
    await withCore(context, async (core) => {
      for (const entry of registry.servers.values()) notes.set(entry.name, await toolNotes(entry, core))
      return 0
    })
  } catch (error) {
    process.stderr.write(`Can't check whether tools have changed: ${terminalLine(messageOf(error))}\n`)
  }
  return notes
}

/** Starts each server and requires that it has tools. */
export async function testServers(context: ServersContext): Promise<number> {
  const { names, registry } = context
  const entries = chosen(context)
  return withCore(context, async (core) => {
    const results = await Promise.all(
      entries.map(async (entry) => ({
        ...(await testServer(entry, core.connections)),
        ...(await toolNotes(entry, core))
      }))
    )
    const lines = results.flatMap((result) => [testedLine(result), ...describeNotes(result.server, result)])
    print(context, results, lines.length > 0 ? lines : [noServers(context)])
    // An unknown key is most often a misspelling, so this command reports it with its exit code.
    const isFlawless = names.length > 0 || registry.problems.length === 0
    return isFlawless && results.every(({ ok }) => ok) ? 0 : 1
  })
}

interface Tested {
  server: string
  /** If false, it was not started, which is not a failure. */
  enabled: boolean
  ok: boolean
  ms: number
  tools?: string[]
  reason?: string
}

function testedLine({ server, enabled, ok, tools, reason }: Tested): string {
  if (!enabled) return `off   ${server}: it is switched off`
  return ok ? `ok    ${server}: ${plural(tools?.length ?? 0, 'tool')}` : `FAILS ${server}: ${reason}`
}

const noServers = ({ file }: ServersContext) => `${file} has no servers.`

async function testServer(
  { name, enabled }: ServerEntry,
  connections: GatewayServices['connections']
): Promise<Tested> {
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

function healthOf(entry: ServerEntry, { index, grants }: Pick<GatewayServices, 'index' | 'grants'>) {
  const { name, enabled } = entry
  const { seenAt = 0, tools = [], startMs, lastError, denied } = index.record(name) ?? {}
  const seen = seenAt > 0 ? { seenAt: new Date(seenAt).toISOString(), tools: tools.length, startMs } : {}
  const failure = lastError ? { lastError: lastError.message, failedAt: new Date(lastError.at).toISOString() } : {}
  const waiting = grants?.isWaiting(entry) ? { waiting: true } : {}
  return { server: name, enabled, ...waiting, ...seen, ...failure, ...(denied ? { denied } : {}) }
}

export async function showHealth(context: ServersContext): Promise<number> {
  const entries = chosen(context)
  return withCore(context, async (core) => {
    const rows = await Promise.all(
      entries.map(async (entry) => ({ ...healthOf(entry, core), ...(await toolNotes(entry, core)) }))
    )
    const lines = rows.flatMap((row) => {
      const seen = 'seenAt' in row ? `${plural(row.tools ?? 0, 'tool')}, seen ${row.seenAt}` : 'never seen'
      const error = 'lastError' in row ? `; last error: ${row.lastError}` : ''
      const hosts = Object.entries(row.denied ?? {}).map(([host, { count }]) => `${host} (${count})`)
      const denied = hosts.length > 0 ? `; network refused: ${hosts.join(', ')}` : ''
      const waiting = 'waiting' in row ? `; ${WAITING}` : ''
      const state = `${row.server.padEnd(24)} ${row.enabled ? seen : 'off'}${waiting}${error}${denied}`
      return [state, ...describeNotes(row.server, row)]
    })
    print(context, rows, lines.length > 0 ? lines : [noServers(context)])
    return rows.some((row) => row.enabled && 'lastError' in row) ? 1 : 0
  })
}

export async function showLogs(context: ServersContext): Promise<number> {
  const name = oneName(context)
  const dir = dataPaths(context.settings.DATA_DIR).serverLogs
  const file = serverLogFile(dir, name)
  const lines = await readServerLog(dir, name, LOG_LINES, LOCAL_OWNER)
  if (!lines) chosen(context)
  if (!lines) throw new AppError('not-found', 'no_log', `"${name}" has written nothing yet (${file}).`)
  print(context, { server: name, file, lines }, lines)
  return 0
}

export async function withCore(
  context: ServersContext,
  job: (core: GatewayServices) => Promise<number>
): Promise<number> {
  const app = await openQuietGateway(context.settings)
  try {
    return await job(await app.core())
  } finally {
    await app.stop()
  }
}
