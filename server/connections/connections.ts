/**
 * All live MCP clients of this process, by server and by whose credentials they use. Owns who shares a connection and that at
 * most a few start at once; a connection's own life is in `server-connection.ts`. Invariants: what was opened with an owner's
 * credentials serves that owner alone, and after `close` no child of ours is left.
 */

import type { Caller } from '../calls/caller.ts'
import type { ToolObserver } from '../calls/tool-observer.ts'
import { type Tracing, traced } from '../calls/tracing/tracing.ts'
import type { Credentials } from '../catalog/credentials.ts'
import type { Grants } from '../catalog/grants.ts'
import { secretNames } from '../catalog/placeholders.ts'
import type { ServerEntry } from '../catalog/server-entry.ts'
import type { ServerAbout, StoredTool } from '../catalog/stored-tools.ts'
import { AppError, messageOf } from '../lib/errors.ts'
import type { Logger } from '../lib/logger.ts'
import type { ChildContainers } from '../sandbox/child-port.ts'
import { Denials } from './denials.ts'
import type { CallInput, LiveServer, RawResult, RequestInput } from './live-server.ts'
import type { OurPlaces } from './local/child-covers.ts'
import { ChildProcesses, EXPOSED } from './local/child-processes.ts'
import type { PeerSocket, Sender } from './local/peer-process.ts'
import { openServer } from './open-server.ts'
import { capabilityKey, type Peer } from './peer.ts'
import { COMMON, Logins } from './remote/logins.ts'
import { ServerConnection, type ServerState } from './server-connection.ts'
import { ServerLog, serverLogFile } from './server-log.ts'
import { combine, type PoolState, ServerPool } from './server-pool.ts'
import { StartGate } from './start-gate.ts'
import type { ToolRecords } from './tool-records.ts'

export interface ConnectionsOptions {
  index: ToolRecords
  credentials: Credentials
  /** Of which children get a few harmless variables, and no more. */
  environment: Record<string, string | undefined>
  /** Folder for what servers write to stderr. */
  logDir?: string | undefined
  /** The engine's side of servers that want a sandbox: loaded with the first of them. */
  openContainers: () => Promise<ChildContainers>
  /** Files and folders of ours that no child may see. */
  places?: OurPlaces | undefined
  /** Who may have secrets; without it, everyone. */
  grants?: Pick<Grants, 'check'> | undefined
  /** Others than the owner of this machine use it. */
  isHosted?: boolean | undefined
  /** Folder of the logins to remote servers. */
  loginDir?: string | undefined
  version: string
  observer?: ToolObserver | undefined
  tracing?: Tracing | undefined
  logger: Logger
}

/** What everyone may hear of a failure whose words may be of one owner's data. */
const FAILED_FOR_OWNER = 'It failed for an owner with credentials of their own.'
const STARTING_AT_ONCE = 4
const MAX_TEXT = 20_000
/** Connections of one server that different owners or clients have to themselves. */
const MAX_SCOPES = 64

interface Asking {
  caller: Caller
  signal: AbortSignal
}

/** What lives of one entry: pools by scope, which says whose credentials they use and which client has them to itself. */
interface Hub {
  entry: ServerEntry
  secretNames: string[]
  pools: Map<string, Scoped>
}

interface Scoped {
  /** Whose credentials it uses, where they are not the common ones. */
  owner: string | undefined
  pool: ServerPool
  log: ServerLog
}

export class Connections {
  readonly #options: ConnectionsOptions
  readonly #processes: ChildProcesses
  #containers: Promise<ChildContainers> | undefined
  readonly #gate = new StartGate(STARTING_AT_ONCE)
  readonly #hubs = new Map<string, Hub>()
  /** Of no hub any more, and not at their end. */
  readonly #retiring = new Set<ServerPool>()
  readonly #peers = new Map<string, Peer>()
  readonly #calls = new Map<string, number>()
  readonly #logins: Logins | undefined
  #closed = false

  constructor(options: ConnectionsOptions) {
    this.#options = options
    const { places, isHosted, logger } = options
    const onExposed = (sentence: string) => logger.warn(sentence)
    this.#processes = new ChildProcesses(options.environment, { places, isHosted, onExposed })
    this.#logins = options.loginDir === undefined ? undefined : new Logins(options.loginDir)
  }

  get childPids(): number[] {
    return this.#processes.pids
  }

  /** What servers without `sandbox` can reach here that they should not, in a sentence. */
  async exposure(): Promise<string | undefined> {
    try {
      return (await this.#processes.isolation())?.covers ? undefined : EXPOSED
    } catch (error) {
      return messageOf(error)
    }
  }

  /** Whether a connection comes from a server that runs here. */
  senderOf(socket: PeerSocket): Sender {
    return this.#processes.senderOf(socket)
  }

  /** Of all instances together, and of each. */
  state(server: string): PoolState | undefined {
    const states = this.#pools(server).flatMap(({ pool, owner }) =>
      owner === undefined ? pool.states : pool.states.map(withoutWords)
    )
    return combine(states)
  }

  /** Made since this process began. */
  calls(server: string): number {
    return this.#calls.get(server) ?? 0
  }

  /** Of what is shared, and of what is this owner's alone. */
  logTail(server: string, asker: string): string {
    return this.#pools(server)
      .filter(({ owner }) => owner === undefined || owner === asker)
      .map(({ log }) => log.tail())
      .join('')
  }

  /** Of the caller's own connection, if it runs: another one's may have others. Starts nothing. */
  runningTools(server: string, caller: Caller): StoredTool[] | undefined {
    const hub = this.#hubs.get(server)
    if (!hub || hub.entry.fingerprint !== this.#options.index.entry(server)?.fingerprint) return undefined
    return hub.pools.get(this.#scope(hub, caller).scope)?.pool.main.live?.tools
  }

  async list(server: string, { caller, signal }: Asking) {
    return this.#of(server, caller).list(signal)
  }

  /** Asks the server itself, whatever is known of it; one that rests after failures is tried at once. */
  async test(server: string, { caller, signal }: Asking) {
    return this.#of(server, caller).test(signal)
  }

  async call(server: string, input: CallInput): Promise<{ result: RawResult; attempts: number }> {
    const pool = this.#of(server, input.caller)
    this.#calls.set(server, this.calls(server) + 1)
    return pool.call(input)
  }

  async request(server: string, input: RequestInput): Promise<RawResult> {
    return this.#of(server, input.caller).request(input)
  }

  /** Connections that one client has for itself, made when they are needed; a caller with this id uses them. */
  openLane(peer: Peer): string {
    const lane = crypto.randomUUID()
    this.#peers.set(lane, peer)
    return lane
  }

  /** Started or not. */
  connection(server: string, caller: Caller): ServerConnection {
    return this.#of(server, caller).main
  }

  /** The server's entry has changed or gone: what runs of it finishes its calls and ends. */
  retire(server: string): void {
    const pools = this.#pools(server)
    this.#hubs.delete(server)
    for (const { pool } of pools) this.#retire(pool)
  }

  /** A client that had connections to itself has gone. */
  release(connection: string): void {
    this.#peers.delete(connection)
    for (const hub of this.#hubs.values()) {
      for (const [scope, { pool }] of hub.pools) {
        if (!scope.endsWith(`\n${connection}`)) continue
        hub.pools.delete(scope)
        this.#retire(pool)
      }
    }
  }

  #retire(pool: ServerPool): void {
    this.#retiring.add(pool)
    void pool.retire().finally(() => this.#retiring.delete(pool))
  }

  async stop(server: string): Promise<void> {
    await Promise.all(this.#pools(server).map(({ pool }) => pool.stop()))
  }

  async close(): Promise<void> {
    this.#closed = true
    const open = [...this.#hubs.keys()].flatMap((server) => this.#pools(server)).map(({ pool }) => pool)
    this.#hubs.clear()
    const containers = this.#containers?.then((opened) => opened.stopAll())
    await Promise.all([this.#processes.stopAll(), containers])
    await Promise.all([...open, ...this.#retiring].map((pool) => pool.stop()))
  }

  #pools(server: string): Scoped[] {
    return [...(this.#hubs.get(server)?.pools.values() ?? [])]
  }

  #of(server: string, caller: Caller): ServerPool {
    if (this.#closed) throw new AppError('unavailable', 'shutting_down', 'The gateway is stopping.')
    const entry = this.#options.index.entry(server)
    if (entry === undefined) throw unknownServer(server)
    const hub = this.#hub(entry)
    const { owner, scope } = this.#scope(hub, caller)
    const known = hub.pools.get(scope)
    if (known) return known.pool
    makeRoom(hub, (pool) => this.#retire(pool))
    const peer = caller.laneId === undefined ? undefined : this.#peers.get(caller.laneId)
    const created = this.#create(entry, owner, peer)
    hub.pools.set(scope, created)
    return created.pool
  }

  /** An owner without credentials of their own shares the common ones, and the connection that uses them. */
  #scope({ entry, secretNames: names }: Hub, caller: Caller): { owner: string | undefined; scope: string } {
    const isOwn = this.#options.credentials.differsFor(caller.owner, names) || this.#hasLogin(entry, caller)
    const owner = isOwn ? caller.owner : undefined
    return { owner, scope: `${owner ?? ''}\n${caller.laneId ?? ''}` }
  }

  #hasLogin({ kind, name }: ServerEntry, { owner }: Caller): boolean {
    return kind === 'remote' && (this.#logins?.has(name, owner) ?? false)
  }

  #hub(entry: ServerEntry): Hub {
    const known = this.#hubs.get(entry.name)
    if (known?.entry.fingerprint === entry.fingerprint) return known
    this.retire(entry.name)
    const hub = {
      entry,
      secretNames: secretNames(entry.kind === 'local' ? entry.env : entry.headers),
      pools: new Map<string, Scoped>()
    }
    this.#hubs.set(entry.name, hub)
    return hub
  }

  #create(entry: ServerEntry, owner: string | undefined, peer: Peer | undefined): Scoped {
    const { index, credentials, logDir, version, observer, tracing, logger } = this.#options
    const log = new ServerLog(logDir === undefined ? undefined : serverLogFile(logDir, entry.name, owner))
    const secrets = () => credentials.source(owner)
    const login = () => {
      const whose = owner !== undefined && this.#logins?.has(entry.name, owner) ? owner : COMMON
      const hide = (tokens: string[]) => log.hide(tokens)
      return entry.kind === 'remote' ? this.#logins?.provider(entry.name, entry.url, whose, hide) : undefined
    }
    const denials = new Denials({ entry, log, logger, index })
    const onDenied = (target: string, reason: string) => {
      denials.add(target, reason)
      observer?.denied?.(entry.name)
    }
    const connect = () => {
      let starts = 0
      return new ServerConnection({
        entry,
        log,
        logger,
        toolsSeen: () => index.tools(entry.name)?.length ?? 0,
        gate: this.#gate,
        open: (signal, onToolsChanged) => {
          const revision = index.revision(entry.name)
          const processes = this.#processes
          const containers = () => {
            this.#containers ??= this.#options.openContainers()
            return this.#containers
          }
          const places = { processes, containers, secrets, login, log }
          const checkGrant = (asked: ServerEntry) => this.#options.grants?.check(asked)
          const options = { ...places, checkGrant, entry, version, revision, signal, onToolsChanged, onDenied, peer }
          const about = { attributes: { server: entry.name } }
          return traced(tracing, 'server start', about, () => openServer(options))
        },
        onListed: (tools, { live, startMs }) => {
          if (startMs !== undefined) observer?.started?.(entry.name, startMs, starts++ > 0)
          const facts = live ? { revision: live.revision, about: aboutOf(live), ...(startMs ? { startMs } : {}) } : {}
          index.listed(entry, tools, facts, peer ? capabilityKey(peer.capabilities) : '')
          if (live) peer?.onOpened(entry.name, live)
        },
        onFailed: (error) => {
          index.failed(entry, owner === undefined ? error.message : FAILED_FOR_OWNER)
          if (error.code !== 'server_resting') observer?.startFailed?.(entry.name, error.code)
        }
      })
    }
    // What a client sets up in a conversation of its own is there in that one only.
    return { owner, log, pool: new ServerPool(peer ? 1 : entry.instances, connect) }
  }
}

/** Many owners come and go: of those who are not at work, the one that came first leaves. */
function makeRoom({ entry, pools }: Hub, retire: (pool: ServerPool) => void): void {
  if (pools.size < MAX_SCOPES) return
  for (const [scope, { pool }] of pools) {
    if (pool.busy > 0) continue
    pools.delete(scope)
    retire(pool)
    return
  }
  const message = `The server "${entry.name}" is at work for ${pools.size} owners, which is the most: try again later.`
  throw new AppError('unavailable', 'too_many_owners', message, { details: { sent: false } })
}

function withoutWords({ lastError, ...state }: ServerState): ServerState {
  return { ...state, ...(lastError ? { lastError: { at: lastError.at, message: FAILED_FOR_OWNER } } : {}) }
}

function aboutOf({ capabilities, instructions }: LiveServer): ServerAbout {
  return {
    capabilities: { ...capabilities },
    ...(instructions ? { instructions: instructions.slice(0, MAX_TEXT) } : {})
  }
}

export function unknownServer(server: string): AppError {
  const message = `There is no server "${server.slice(0, 100)}" in the registry, or it is switched off or its entry is faulty: see mcp-orchestrator servers list.`
  return new AppError('not-found', 'unknown_server', message)
}
