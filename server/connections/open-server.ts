import {
  type AuthProvider,
  Client,
  type PriorDiscovery,
  SSEClientTransport,
  StreamableHTTPClientTransport,
  type SubscriptionFilter,
  type Transport
} from '@modelcontextprotocol/client'
import { refuseForeignPlaceholders } from '../catalog/import/foreign-placeholders.ts'
import { literalSecrets } from '../catalog/literal-secrets.ts'
import { fillPlaceholders, type SecretSource } from '../catalog/placeholders.ts'
import type { LocalEntry, RemoteEntry, ServerEntry } from '../catalog/server-entry.ts'
import { AppError, isAppError, messageOf } from '../lib/errors.ts'
import type { ChildContainers } from '../sandbox/child-port.ts'
import { CallScopes } from './asking/call-scopes.ts'
import type { Peer } from './asking/peer.ts'
import { LiveServer } from './live-server.ts'
import type { ChildProcesses } from './local/child-processes.ts'
import { ChildTransport } from './local/child-transport.ts'
import { startInSandbox } from './local/start-in-sandbox.ts'
import { watchProgress } from './local/start-progress.ts'
import { boundedFetch } from './remote/bounded-fetch.ts'
import type { ServerLog } from './server-log.ts'
import { PROGRESS_MS, withOvertime } from './start-budget.ts'
import type { KnownRevision } from './tool-records.ts'
import { callFailure } from './wire/call-failure.ts'
import { causeLine } from './wire/cause-line.ts'
import { noValidator } from './wire/raw-result.ts'

export interface OpenServerOptions {
  entry: ServerEntry
  processes: ChildProcesses
  /** Opens the container engine, when the first server with a sandbox needs it. */
  containers: () => Promise<ChildContainers>
  secrets: () => SecretSource
  /** Throws if this entry may not have its secrets. */
  checkGrant?: ((entry: ServerEntry) => void) | undefined
  /** For a remote server: credentials in place of a header of its entry. */
  login?: (() => AuthProvider | undefined) | undefined
  log: ServerLog
  version: string
  /** The revision found earlier. */
  revision?: KnownRevision | undefined
  signal: AbortSignal
  /** The server must have answered by this time (of `performance.now()`), over all tries. */
  answersBy: number
  /** Called if it has not answered by then, but still makes progress. */
  onOvertime?: (() => void) | undefined
  onToolsChanged(): void
  /** Called when the server was refused a connection that its entry does not allow. */
  onDenied(target: string, reason: string): void
  /** The one client that this connection belongs to. */
  peer?: Peer | undefined
}

/** An old server that does not answer the probe costs this much, once: the result is remembered. */
const PROBE_MS = 4000
/** Longer than any start: our own deadline comes first. */
const CONNECT_MS = 900_000

/**
 * Starts or reaches a server, initializes it in the revision that it speaks, and lists its tools. If it fails, it leaves nothing
 * behind.
 */
export async function openServer(options: OpenServerOptions): Promise<LiveServer> {
  const { revision } = options
  const known = revision === undefined ? undefined : priorOf(revision)
  try {
    return await connect(options, known)
  } catch (error) {
    const hopeless =
      isAppError(error) &&
      (error.details.sandbox ||
        [
          'server_not_startable',
          'secret_missing',
          'secret_unusable',
          'secret_not_granted',
          'placeholder_unknown',
          'isolation_unavailable',
          'isolation_undecided'
        ].includes(error.code))
    if (options.signal.aborted || hopeless || leftMs(options) === 0) throw error
    // The server may have been updated since; or it was never probed and dies of the probe.
    if (known?.kind === 'modern') return connect(options, undefined)
    if (known === undefined && options.entry.kind === 'local') return connect(options, { kind: 'legacy' })
    throw error
  }
}

async function connect(options: OpenServerOptions, prior: PriorDiscovery | undefined): Promise<LiveServer> {
  const { entry, signal, version, onToolsChanged, peer } = options
  refuseForeignPlaceholders(entry)
  options.checkGrant?.(entry)
  const transport = entry.kind === 'local' ? await startChild(options, entry) : reach(options, entry)
  const client = new Client(
    { name: 'mcp-orchestrator', version },
    {
      ...(peer ? { capabilities: peer.capabilities } : {}),
      jsonSchemaValidator: noValidator,
      versionNegotiation: { mode: 'auto', probe: { timeoutMs: Math.min(PROBE_MS, entry.timeouts.startMs) } },
      listChanged: { tools: { autoRefresh: false, onChanged: onToolsChanged } }
    }
  )
  if (peer) forwardToPeer(client, entry.name, peer, transport)
  const onAbort = () => void transport.close()
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    // The deadline may have passed while the process was created.
    signal.throwIfAborted()
    const ms = Math.max(1, leftMs(options))
    const deadline = { what: `the server "${entry.name}" to answer`, ms, signal, code: 'server_start_timeout' }
    const child = transport instanceof ChildTransport ? transport : undefined
    // The SDK gives the probe and the initialization a time each; together they have no more than this deadline.
    await withOvertime(deadline, overtimeOf(options, child, ms), (inner) =>
      client.connect(transport, { timeout: CONNECT_MS, signal: inner, ...(prior ? { prior } : {}) })
    )
    const scopes = peer instanceof CallScopes ? peer : undefined
    const live = new LiveServer(entry, client, child, (text) => options.log.redact(text), scopes)
    await live.list(signal)
    if (prior?.kind === 'modern') listenForChanges(client, { toolsListChanged: true })
    if (peer && live.revision?.kind === 'modern')
      listenForChanges(client, { promptsListChanged: true, resourcesListChanged: true })
    return live
  } catch (error) {
    await client.close().catch(() => {})
    await transport.close().catch(() => {})
    throw startFailure(options, transport, error)
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

/** Whether a child that has not answered in time may go on. Looks for progress in the last seconds before each check. */
function overtimeOf({ log, onOvertime }: OpenServerOptions, child: ChildTransport | undefined, ms: number) {
  // In less time, the start of the process itself would look like progress.
  if (child === undefined || onOvertime === undefined || ms < 1.5 * PROGRESS_MS) return () => false
  const isWorking = watchProgress(() => log.written, child.pid ?? 0)
  setTimeout(isWorking, ms - PROGRESS_MS).unref()
  return () => {
    const goesOn = child.isOpen && isWorking()
    if (goesOn) onOvertime()
    return goesOn
  }
}

/** Connects the server's own requests and notifications to the client behind this connection. */
function forwardToPeer(client: Client, server: string, peer: Peer, transport: Transport): void {
  // While a person answers a question, the deadlines of the calls that may have led to it are postponed.
  const postpone = () => {
    if (transport instanceof ChildTransport) transport.calls.postponeDeadlines()
  }
  client.fallbackRequestHandler = ({ method, params = {} }, { mcpReq }) =>
    peer.onRequest(server, { method, params }, mcpReq.signal, postpone)
  client.fallbackNotificationHandler = async ({ method, params }) => peer.onNotification(server, { method, params })
}

/** By itself, the SDK subscribes only to changes of tools, and not if the revision was remembered. */
function listenForChanges(client: Client, requested: SubscriptionFilter): void {
  const { tools, prompts, resources } = client.getServerCapabilities() ?? {}
  const filter: SubscriptionFilter = {
    ...(requested.toolsListChanged && tools?.listChanged ? { toolsListChanged: true } : {}),
    ...(requested.promptsListChanged && prompts?.listChanged ? { promptsListChanged: true } : {}),
    ...(requested.resourcesListChanged && resources?.listChanged ? { resourcesListChanged: true } : {})
  }
  if (Object.keys(filter).length > 0) client.listen(filter).catch(() => {})
}

async function startChild(options: OpenServerOptions, entry: LocalEntry): Promise<ChildTransport> {
  const { secrets, log, processes, containers, onDenied, signal } = options
  const filled = fillPlaceholders(entry.name, entry.env, secrets())
  log.hide([...filled.secrets, ...literalSecrets(entry)])
  log.started()
  const { name: server, command, args, cwd } = entry
  const { sandbox } = entry
  const env = filled.values
  if (sandbox) processes.refuseHidden(server, [...(cwd === undefined ? [] : [cwd]), ...(sandbox.folders ?? [])])
  const child = sandbox
    ? await startInSandbox(entry, { containers, sandbox, env, onDenied, signal })
    : await processes.start({ server, command, args, cwd, env })
  child.stderr.on('data', (chunk: Buffer) => log.push(chunk))
  child.stderr.on('error', () => {})
  return new ChildTransport(child, { onNoise: (line) => log.noise(line) })
}

function reach({ secrets, login, log }: OpenServerOptions, entry: RemoteEntry): Transport {
  const filled = fillPlaceholders(entry.name, entry.headers, secrets(), 'headers')
  const url = new URL(entry.url)
  log.hide([...filled.secrets, ...literalSecrets(entry)])
  const hasOwn = Object.keys(filled.values).some((name) => name.toLowerCase() === 'authorization')
  const authProvider = hasOwn ? undefined : login?.()
  const requestInit = { headers: filled.values }
  const fresh = () => {
    const { values, secrets: hidden } = fillPlaceholders(entry.name, entry.headers, secrets(), 'headers')
    log.hide(hidden)
    return values
  }
  const send = freshHeaders(filled.values, fresh)
  const options = { requestInit, fetch: boundedFetch(undefined, send), ...(authProvider ? { authProvider } : {}) }
  return entry.sse ? new SSEClientTransport(url, options) : new StreamableHTTPClientTransport(url, options)
}

/** Fills in secrets again for every request: they may have been replaced since the connection was opened. */
function freshHeaders(opened: Record<string, string>, fresh: () => Record<string, string>): typeof fetch {
  return (url, init) => {
    const headers = new Headers(init?.headers)
    const shown = Object.entries(opened).filter(([name, value]) => headers.get(name) === value)
    if (shown.length === 0) return fetch(url, init)
    const values = fresh()
    for (const [name] of shown) headers.set(name, values[name] ?? '')
    return fetch(url, { ...init, headers })
  }
}

function leftMs({ answersBy }: OpenServerOptions): number {
  return Math.max(0, Math.round(answersBy - performance.now()))
}

function startFailure({ entry, log, signal }: OpenServerOptions, transport: Transport, error: unknown): AppError {
  if (isAppError(signal.reason)) return signal.reason
  const failure = callFailure(entry.name, 'the initialization', error)
  if (isAppError(error, 'server_start_timeout') || (failure.code === 'child_timeout' && !isAppError(error))) {
    const isLocal = transport instanceof ChildTransport
    const cause = isLocal ? causeLine(log.sinceStart()) : undefined
    const said = cause === undefined ? '' : ` It wrote: ${cause.replace(/\.$/, '')}.`
    const message = `The server "${entry.name}"${isLocal ? ' runs, but' : ''} did not answer within ${entry.timeouts.startMs} ms ("timeoutMs.start").${said}`
    return new AppError('timeout', 'server_start_timeout', message, { cause: error, details: { sent: false } })
  }
  if (failure.code !== 'child_lost' || !(transport instanceof ChildTransport)) return failure
  const why = transport.reason ?? messageOf(error)
  const cause = causeLine(log.sinceStart())
  const said =
    cause === undefined
      ? `${why}.`
      : `${cause.replace(/\.$/, '')} (${why}). See: mcp-orchestrator servers logs ${JSON.stringify(entry.name)}`
  const message = `The server "${entry.name}" did not start: ${said}`
  return new AppError('unavailable', 'server_failed', message, { cause: error, details: { sent: false } })
}

function priorOf(revision: KnownRevision): PriorDiscovery {
  if (revision.kind === 'legacy') return { kind: 'legacy' }
  const { discover } = revision
  const supportedVersions = Array.isArray(discover.supportedVersions) ? discover.supportedVersions.map(String) : []
  const capabilities = typeof discover.capabilities === 'object' ? { ...discover.capabilities } : {}
  return {
    kind: 'modern',
    discover: { ...discover, supportedVersions, capabilities } as Extract<
      PriorDiscovery,
      { kind: 'modern' }
    >['discover']
  }
}
