/**
 * All live MCP clients of this process, by server and by whose credentials they use. Owns which callers share a connection, and
 * the limit on simultaneous starts; a connection's own lifecycle is in `server-connection.ts`. Invariants: a connection opened
 * with an owner's credentials serves only that owner, and after `close` no child of ours is left.
 */

import type { Caller } from '../calls/caller.ts'
import type { ToolObserver } from '../calls/tool-observer.ts'
import { type Tracing, traced } from '../calls/tracing/tracing.ts'
import type { Credentials } from '../catalog/credentials.ts'
import type { Grants } from '../catalog/grants.ts'
import { secretNames } from '../catalog/placeholders.ts'
import { type ServerEntry, valuesOf } from '../catalog/server-entry.ts'
import type { StoredTool } from '../catalog/stored-tools.ts'
import { AppError, messageOf } from '../lib/errors.ts'
import type { Logger } from '../lib/logger.ts'
import { StartGate } from '../lib/waiting/start-gate.ts'
import type { ChildContainers } from '../sandbox/child-port.ts'
import { CallScopes } from './asking/call-scopes.ts'
import { capabilityKey, type Peer } from './asking/peer.ts'
import { Denials } from './denials.ts'
import type { OurPlaces } from './local/child-covers.ts'
import { ChildProcesses, EXPOSED } from './local/child-processes.ts'
import type { PeerSocket, Sender } from './local/peer-process.ts'
import { openServer } from './open-server.ts'
import type { LoginStore } from './remote/login-store.ts'
import { COMMON, Logins } from './remote/logins.ts'
import { ServerConnection } from './server-connection.ts'
import { ServerLog, serverLogFile } from './server-log.ts'
import { ServerPool } from './server-pool.ts'
import { combine, type PoolState, type ServerState } from './server-state.ts'
import type { ToolRecords } from './tool-records.ts'
import { toldToMembers } from './wire/call-failure.ts'
import type { CallInput, RawResult, RequestInput } from './wire/call-input.ts'

export interface ConnectionsOptions {
  index: ToolRecords
  credentials: Credentials
  /** Our environment. Children get a few harmless variables of it and no more. */
  environment: Record<string, string | undefined>
  /** Folder for the servers' stderr logs. */
  logDir?: string | undefined
  /** Opens the container engine, when the first server with a sandbox needs it. */
  openContainers: () => Promise<ChildContainers>
  /** Files and folders of ours that no child may see. */
  places?: OurPlaces | undefined
  /** Checks which entries may have secrets; without it, all may. */
  grants?: Pick<Grants, 'check'> | undefined
  /** Set if people other than the owner of this machine use it. */
  isHosted?: boolean | undefined
  /** Only administrators are told why a server does not start. */
  hidesReasons?: boolean | undefined
  /** The logins to remote servers: a folder, or a store. */
  logins?: LoginStore | string | undefined
  version: string
  observer?: ToolObserver | undefined
  tracing?: Tracing | undefined
  logger: Logger
}

/** Shown to everyone in place of an error that may quote one owner's data. */
const FAILED_FOR_OWNER = 'It failed for an owner with credentials of their own.'
const STARTING_AT_ONCE = 4
/** Maximum number of owners or clients with connections of their own to one server. */
const MAX_SCOPES = 64

interface Asking {
  caller: Caller
  signal: AbortSignal
}

/** The running pools of one entry. Their key, the scope, names the owner of the credentials and the lane. */
interface EntryPools {
  entry: ServerEntry
  secretNames: string[]
  pools: Map<string, ScopedPool>
}

interface ScopedPool {
  /** The owner of the credentials; undefined for the shared ones. */
  owner: string | undefined
  pool: ServerPool
  log: ServerLog
}

export class Connections {
  readonly #options: ConnectionsOptions
  readonly #processes: ChildProcesses
  #containers: Promise<ChildContainers> | undefined
  readonly #gate = new StartGate(STARTING_AT_ONCE)
  readonly #entryPools = new Map<string, EntryPools>()
  /** Pools that are detached but still draining. */
  readonly #retiring = new Set<ServerPool>()
  readonly #peers = new Map<string, Peer>()
  /** The lane for calls of the chat: people share its connections, and are asked what a server asks during their calls. */
  readonly chatLane: string = crypto.randomUUID()
  readonly #calls = new Map<string, number>()
  readonly #logins: Logins | undefined
  #closed = false

  constructor(options: ConnectionsOptions) {
    this.#options = options
    const { places, isHosted, logger } = options
    const onExposed = (sentence: string) => logger.warn(sentence)
    this.#processes = new ChildProcesses(options.environment, { places, isHosted, onExposed })
    this.#logins = options.logins === undefined ? undefined : new Logins(options.logins)
  }

  get childPids(): number[] {
    return this.#processes.pids
  }

  /** A sentence about what servers without `sandbox` can reach here but should not. */
  async exposure(): Promise<string | undefined> {
    try {
      return (await this.#processes.isolation())?.holdsSignals ? undefined : EXPOSED
    } catch (error) {
      return messageOf(error)
    }
  }

  /** Whether a connection comes from a server that runs here. */
  senderOf(socket: PeerSocket): Promise<Sender> {
    return this.#processes.senderOf(socket)
  }

  /** The state of all instances together, and of each one. */
  state(server: string): PoolState | undefined {
    const states = this.#pools(server).flatMap(({ pool, owner }) =>
      owner === undefined ? pool.states : pool.states.map(withoutWords)
    )
    return combine(states)
  }

  /** Number of calls since this process began. */
  calls(server: string): number {
    return this.#calls.get(server) ?? 0
  }

  /** The end of the shared log, followed by this owner's own. */
  logTail(server: string, reader: string): string {
    return this.#pools(server)
      .filter(({ owner }) => owner === undefined || owner === reader)
      .map(({ log }) => log.tail())
      .join('')
  }

  /** The tools of the caller's own connection, if it runs: another connection may have others. Starts nothing. */
  runningTools(server: string, caller: Caller): StoredTool[] | undefined {
    const entryPools = this.#entryPools.get(server)
    if (!entryPools || entryPools.entry.fingerprint !== this.#options.index.entry(server)?.fingerprint) return undefined
    return entryPools.pools.get(this.#scope(entryPools, caller).scope)?.pool.main.live?.tools
  }

  async list(server: string, { caller, signal }: Asking) {
    return this.#poolFor(server, caller).list(signal)
  }

  /** Asks the server itself, whatever the index says. A server with an open circuit breaker is tried at once. */
  async test(server: string, { caller, signal }: Asking) {
    return this.#poolFor(server, caller).test(signal)
  }

  async call(server: string, input: CallInput): Promise<{ result: RawResult; attempts: number }> {
    const pool = this.#poolFor(server, input.caller)
    this.#calls.set(server, this.calls(server) + 1)
    return pool.call(input)
  }

  async request(server: string, input: RequestInput): Promise<RawResult> {
    return this.#poolFor(server, input.caller).request(input)
  }

  /** Creates a lane: connections for one client only, opened when needed. Callers with this `laneId` use them. */
  openLane(peer: Peer): string {
    const lane = crypto.randomUUID()
    this.#peers.set(lane, peer)
    return lane
  }

  /** Returns the connection, whether it is started or not. */
  connection(server: string, caller: Caller): ServerConnection {
    return this.#poolFor(server, caller).main
  }

  /** Called when the server's entry has changed or was removed: running connections finish their calls and close. */
  retire(server: string): void {
    const pools = this.#pools(server)
    this.#entryPools.delete(server)
    for (const { pool } of pools) this.#retire(pool)
  }

  /** Closes the lane of a client that is gone. */
  release(lane: string): void {
    this.#peers.delete(lane)
    for (const { pools, scope, pool } of this.#poolsIn(lane)) {
      pools.delete(scope)
      this.#retire(pool)
    }
  }

  /** Stops the idle servers of a lane; the next call starts them again. */
  rest(lane: string): void {
    for (const { pool } of this.#poolsIn(lane)) if (pool.busy === 0) void pool.stop()
  }

  #poolsIn(lane: string) {
    return [...this.#entryPools.values()].flatMap(({ pools }) =>
      [...pools].flatMap(([scope, { pool }]) => (scope.endsWith(`\n${lane}`) ? [{ pools, scope, pool }] : []))
    )
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
    const open = [...this.#entryPools.keys()].flatMap((server) => this.#pools(server)).map(({ pool }) => pool)
    this.#entryPools.clear()
    const containers = this.#containers?.then((opened) => opened.stopAll())
    await Promise.all([this.#processes.stopAll(), containers])
    await Promise.all([...open, ...this.#retiring].map((pool) => pool.stop()))
  }

  #pools(server: string): ScopedPool[] {
    return [...(this.#entryPools.get(server)?.pools.values() ?? [])]
  }

  #poolFor(server: string, caller: Caller): ServerPool {
    if (this.#closed) throw new AppError('unavailable', 'shutting_down', 'The gateway is stopping.')
    const entry = this.#options.index.entry(server)
    if (entry === undefined) throw unknownServer(server)
    const entryPools = this.#poolsOf(entry)
    const { owner, scope } = this.#scope(entryPools, caller)
    const known = entryPools.pools.get(scope)
    if (known) return known.pool
    makeRoom(entryPools, (pool) => this.#retire(pool))
    const created = this.#create(entry, owner, caller.laneId)
    entryPools.pools.set(scope, created)
    return created.pool
  }

  /** An owner without credentials of their own uses the shared ones, and the shared connection. */
  #scope({ entry, secretNames: names }: EntryPools, caller: Caller): { owner: string | undefined; scope: string } {
    const isOwn = this.#options.credentials.differsFor(caller.owner, names) || this.#hasLogin(entry, caller)
    const owner = isOwn ? caller.owner : undefined
    return { owner, scope: `${owner ?? ''}\n${caller.laneId ?? ''}` }
  }

  #hasLogin({ kind, name }: ServerEntry, { owner }: Caller): boolean {
    return kind === 'remote' && (this.#logins?.has(name, owner) ?? false)
  }

  #poolsOf(entry: ServerEntry): EntryPools {
    const known = this.#entryPools.get(entry.name)
    if (known?.entry.fingerprint === entry.fingerprint) return known
    this.retire(entry.name)
    const entryPools = {
      entry,
      secretNames: secretNames(valuesOf(entry)),
      pools: new Map<string, ScopedPool>()
    }
    this.#entryPools.set(entry.name, entryPools)
    return entryPools
  }

  #create(entry: ServerEntry, owner: string | undefined, laneId: string | undefined): ScopedPool {
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
    const isChat = laneId === this.chatLane
    const connect = () => {
      let starts = 0
      let peer: Peer | undefined
      return new ServerConnection({
        entry,
        log,
        logger,
        tell: (code, reason) => (this.#options.hidesReasons ? toldToMembers(entry.name, code, reason) : reason),
        toolsSeen: () => index.tools(entry.name)?.length ?? 0,
        gate: this.#gate,
        open: (signal, onToolsChanged, answersBy, onOvertime) => {
          const revision = index.revision(entry.name)
          peer = isChat ? new CallScopes() : this.#peers.get(laneId ?? '')
          const processes = this.#processes
          const containers = () => {
            this.#containers ??= this.#options.openContainers()
            return this.#containers
          }
          const places = { processes, containers, secrets, login, log, answersBy, onOvertime }
          const checkGrant = (granted: ServerEntry) => this.#options.grants?.check(granted)
          const options = { ...places, checkGrant, entry, version, revision, signal, onToolsChanged, onDenied, peer }
          const about = { attributes: { server: entry.name } }
          return traced(tracing, 'server start', about, () => openServer(options))
        },
        onListed: (tools, { live, startMs }) => {
          if (startMs !== undefined) observer?.started?.(entry.name, startMs, starts++ > 0)
          const details = live ? { revision: live.revision, about: live.about, ...(startMs ? { startMs } : {}) } : {}
          index.listed(entry, tools, details, peer ? capabilityKey(peer.capabilities) : '')
          if (live) peer?.onOpened(entry.name, live)
        },
        onFailed: (error) => {
          index.failed(entry, owner === undefined ? error.message : FAILED_FOR_OWNER)
          observer?.startFailed?.(entry.name, error.code)
        }
      })
    }
    // State that a client sets up in its own conversation exists only there, so its lane has one instance.
    const isOneClient = laneId !== undefined && !isChat
    return { owner, log, pool: new ServerPool(isOneClient ? 1 : entry.instances, connect) }
  }
}

/** Makes room for one more owner: retires the oldest pool that is idle. */
function makeRoom({ entry, pools }: EntryPools, retire: (pool: ServerPool) => void): void {
  if (pools.size < MAX_SCOPES) return
  for (const [scope, { pool }] of pools) {
    if (pool.busy > 0) continue
    pools.delete(scope)
    retire(pool)
    return
  }
  const message = `The server "${entry.name}" is busy for ${pools.size} owners, which is the limit. Try again later.`
  throw new AppError('unavailable', 'too_many_owners', message, { details: { sent: false } })
}

function withoutWords({ lastError, ...state }: ServerState): ServerState {
  return { ...state, ...(lastError ? { lastError: { at: lastError.at, message: FAILED_FOR_OWNER } } : {}) }
}

export function unknownServer(server: string): AppError {
  const message = `There is no server "${server.slice(0, 100)}" in the registry, or it is switched off, or its entry is invalid. See mcp-orchestrator servers list.`
  return new AppError('not-found', 'unknown_server', message)
}
