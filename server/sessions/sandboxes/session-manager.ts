/**
 * The sessions of this instance: lets callers work in a session's sandbox, keeps leases alive meanwhile, and ends everything
 * cleanly. Does not decide what is run; invariant: a job runs only while this instance holds the session's lease.
 */
import type { PathTarget } from '../../../workspace-server/protocol.ts'
import { messageOf } from '../../lib/errors.ts'
import { KeyedLock } from '../../lib/waiting/keyed-lock.ts'
import { shuttingDown } from '../../lib/waiting/shutting-down.ts'
import type { ToolDefinition, ToolResult } from '../../sandbox/port.ts'
import { Janitor } from './janitor.ts'
import { type EnterOptions, LiveSession, sessionBusy } from './live-session.ts'
import { journal, runSandboxTool, type ToolCall } from './run-sandbox-tool.ts'
import { SandboxPlaces } from './sandbox-places.ts'
import { SandboxShutdown } from './sandbox-shutdown.ts'
import type { SessionsDeps, SessionsOptions } from './session-options.ts'
import type { SandboxContext } from './session-sandbox.ts'
import { WarmPool } from './warm-pool.ts'

const PING_EVERY_MS = 600_000
/** For those who name no other deadline. */
const STOP_WITHIN_MS = 25_000
const QUIET_CALL_MS = 30_000

/** What a job may do in a session's sandbox. */
export interface Workspace {
  readonly containerId: string
  readonly epoch: number
  listTools(): Promise<ToolDefinition[]>
  /** A call that the person made themselves: not part of the conversation. */
  callQuietly(name: string, args: Record<string, unknown>): Promise<ToolResult>
  saveFiles(): Promise<void>
  /** Where paths of tool arguments lead. */
  resolve(paths: string[]): Promise<PathTarget[]>
}

/** A session that this instance has to itself. */
export interface HeldSession {
  readonly epoch: number
  /** The sandbox, which is made, woken, repaired or taken over first as needed. */
  workspace(signal?: AbortSignal): Promise<Workspace>
  /** Runs a call in the sandbox, which is opened first as for `workspace`, and leaves its trace. */
  runTool(call: ToolCall): Promise<ToolResult>
  /** Runs a call that does not go to the sandbox, and leaves its trace. */
  journal(callId: string, run: () => Promise<ToolResult>): Promise<ToolResult>
}

export class SessionManager {
  readonly #deps: SessionsDeps
  readonly #options: SessionsOptions
  readonly #sessions = new Map<string, LiveSession>()
  readonly #context: SandboxContext
  readonly #lock = new KeyedLock()
  readonly #timers: NodeJS.Timeout[] = []
  readonly pool: WarmPool
  readonly janitor: Janitor
  #shutdown: SandboxShutdown | undefined
  #deployment = ''
  /** Of the store, as last seen; sandboxes of this instance are registered there. */
  #origin = ''
  #isSwept = false
  #stopping = false
  #stopped: Promise<void> | undefined

  constructor(deps: SessionsDeps, options: SessionsOptions) {
    this.#deps = deps
    this.#options = options
    const made = new Set<string>()
    const deployment = () => this.#deployment
    const { engine, logger, instanceId } = deps
    const owner = async () => ({ deployment: await this.#knownDeployment(), instance: instanceId })
    this.pool = new WarmPool({ engine, owner, size: options.warmPoolSize, logger, made })
    const places = new SandboxPlaces({ deps, options, recycle: (id) => this.janitor.giveWay(id) })
    this.#context = { deps, options, pool: this.pool, places, made, owner }
    const session = (id: string) => this.#session(id)
    const done = (live: LiveSession) => this.#forget(live)
    const origin = () => this.#origin
    const inUse = () => new Set([...this.#sessions.values()].map(({ sandbox }) => sandbox.containerId))
    this.janitor = new Janitor({ deps, options, made, inUse, deployment, origin, session, done })
  }

  /** Needs a store that answers; an engine may come later. */
  async start(): Promise<void> {
    await this.#beat()
    this.pool.fill()
    this.#every(this.#options.leaseMs / 3, () => this.#beat())
    this.#every(this.#options.janitorIntervalMs, () => this.janitor.round())
    this.#every(PING_EVERY_MS, () => this.#ping())
    // Until then the record of an instance that has just crashed has not ended yet.
    this.#timers.push(setTimeout(() => void this.janitor.round(), this.#options.leaseMs * 2 + 1000).unref())
    await this.janitor.round()
  }

  /**
   * Removes what dead instances have left and no session needs. For every start, before it counts as ready: a server that is
   * started and killed again and again must not collect containers.
   */
  async sweep(): Promise<void> {
    await this.#knownDeployment()
    await this.janitor.sweep()
    this.#isSwept = true
  }

  get isSwept(): boolean {
    return this.#isSwept
  }

  /** Runs a job while this instance, and no other, holds the session. The sandbox is touched only when the job asks for it. */
  async hold<T>(sessionId: string, job: (hold: HeldSession) => Promise<T>, options?: EnterOptions): Promise<T> {
    if (this.#stopping) throw shuttingDown()
    const session = this.#session(sessionId)
    await session.enter(options)
    try {
      const unlessStopping = async <R>(work: () => Promise<R>) => {
        if (this.#stopping) throw shuttingDown()
        return work()
      }
      return await job({
        epoch: session.epoch,
        workspace: (inner) => unlessStopping(() => openWorkspace(session, inner)),
        runTool: (call) => unlessStopping(() => runSandboxTool(session, call)),
        journal: (callId, run) => journal(session, callId, run)
      })
    } finally {
      await session.leave()
      this.#forget(session)
    }
  }

  /** Runs a job in the session's sandbox. */
  run<T>(sessionId: string, job: (workspace: Workspace) => Promise<T>, signal?: AbortSignal): Promise<T> {
    return this.hold(sessionId, async (hold) => job(await hold.workspace(signal)), { signal })
  }

  /** Someone looks at the session (a tab is open): its sandbox is not paused. */
  attach(sessionId: string): () => void {
    const session = this.#session(sessionId)
    session.attach()
    let attached = true
    return () => {
      if (!attached) return
      attached = false
      session.detach()
      this.#forget(session)
    }
  }

  state(sessionId: string): LiveSession['sandbox']['state'] {
    return this.#sessions.get(sessionId)?.sandbox.state ?? 'none'
  }

  /** Sessions whose files `stop` has saved, and those that it has not saved (yet): their sandboxes are left to the next start. */
  get ending(): { saved: number; unsaved: string[] } {
    const { saved = 0, unsaved = [] } = this.#shutdown ?? {}
    return { saved, unsaved }
  }

  /** Sandboxes that this instance is connected to. */
  get liveSandboxes(): number {
    return [...this.#sessions.values()].filter(({ sandbox }) => sandbox.state !== 'none').length
  }

  /** How many sessions this instance has at hand. */
  get known(): number {
    return this.#sessions.size
  }

  /** Ends the session for good: container, files, log and record. */
  async destroy(sessionId: string): Promise<void> {
    const { store, engine, checkpoints, events, instanceId } = this.#deps
    const session = this.#session(sessionId)
    await session.locked(async () => {
      const taken = await store.acquire(sessionId, instanceId, this.#options.leaseMs)
      if (!taken.granted) throw sessionBusy()
      await session.loseLease()
      if (taken.record.containerId) await engine.remove(taken.record.containerId)
      await checkpoints.remove(sessionId)
      await events.remove(sessionId)
      await store.remove(sessionId, taken.record.epoch)
    })
    this.#forget(session)
  }

  /** Sessions that have a sandbox here. */
  get openIds(): string[] {
    const open = [...this.#sessions.values()].filter(({ sandbox }) => sandbox.state !== 'none')
    return open.map(({ sessionId }) => sessionId)
  }

  /**
   * Releases what a session still has here that the store lost, its owner included. Its last changes are saved for nobody; the files that
   * were saved before stay until their retention is over.
   */
  async giveUp(sessionId: string): Promise<void> {
    const { store, engine, events, instanceId } = this.#deps
    const session = this.#session(sessionId)
    await session.locked(async () => {
      const here = session.sandbox.containerId
      const taken = await store.acquire(sessionId, instanceId, this.#options.leaseMs)
      if (!taken.granted) throw sessionBusy()
      await session.loseLease()
      const { containerId, epoch } = taken.record
      for (const id of new Set([containerId, here])) if (id) await engine.remove(id)
      await events.remove(sessionId)
      await store.remove(sessionId, epoch)
    })
    this.#forget(session)
  }

  /**
   * Checkpoints and removes every container of this instance, and as the last one also those that killed ones have left; what
   * can't be done in time is left to the next start.
   */
  stop(withinMs = STOP_WITHIN_MS): Promise<void> {
    this.#stopped ??= this.#stop(withinMs)
    return this.#stopped
  }

  async #stop(withinMs: number): Promise<void> {
    this.#stopping = true
    for (const timer of this.#timers) clearInterval(timer)
    const { leaseMs } = this.#options
    const late = new AbortController()
    const timer = setTimeout(() => late.abort(), withinMs)
    const isLate = new Promise((resolve) => late.signal.addEventListener('abort', resolve, { once: true }))
    const sessions = [...this.#sessions.values()]
    const shutdown = new SandboxShutdown({ deps: this.#deps, leaseMs, sessions, late: late.signal })
    this.#shutdown = shutdown
    const work = Promise.allSettled([
      this.pool.stop(),
      this.janitor.stop(),
      // A start that is broken off leaves no more than it found.
      this.sweep().catch((error) => this.#deps.logger.debug({ err: error }, 'Containers are left to the next start.')),
      shutdown.run()
    ])
    await Promise.race([work.then(() => this.#recycleLeft(shutdown, late.signal)), isLate])
    clearTimeout(timer)
    await this.#deps.store.signOff(this.#deps.instanceId).catch(() => {})
  }

  async #recycleLeft(shutdown: SandboxShutdown, late: AbortSignal): Promise<void> {
    const { store, instanceId, logger } = this.#deps
    if (late.aborted) return
    try {
      if ((await store.instances()).some((id) => id !== instanceId)) return
      await this.janitor.recycleLeft()
      await shutdown.lookAgain()
    } catch (error) {
      logger.warn({ err: error }, `Containers of earlier instances are left for the next start: ${messageOf(error)}`)
    }
  }

  #session(sessionId: string): LiveSession {
    const known = this.#sessions.get(sessionId)
    if (known) return known
    const session = new LiveSession(sessionId, this.#context, this.#lock)
    this.#sessions.set(sessionId, session)
    return session
  }

  #forget(session: LiveSession): void {
    const { sessionId, isForgettable } = session
    if (isForgettable && this.#sessions.get(sessionId) === session) this.#sessions.delete(sessionId)
  }

  /** A container without its deployment's label would be found by no janitor: whoever makes one before the first beat asks. */
  async #knownDeployment(): Promise<string> {
    if (this.#deployment === '') this.#deployment = await this.#deps.store.deploymentId()
    return this.#deployment
  }

  async #beat(): Promise<void> {
    const { store, instanceId } = this.#deps
    this.#deployment = await store.deploymentId()
    const { id: origin } = await store.origin()
    await store.heartbeat(instanceId, this.#options.leaseMs * 2)
    const sessions = [...this.#sessions.values()]
    await Promise.allSettled(sessions.map((session) => session.beat()))
    for (const session of sessions) this.#forget(session)
    if (this.#origin !== '' && this.#origin !== origin) await this.#registerAgain()
    this.#origin = origin
  }

  /** The store lost what it knew: tell it of the sandboxes that we have, or nobody would ever recycle them. */
  async #registerAgain(): Promise<void> {
    this.#deps.logger.warn('The store was emptied; the sandboxes of this instance are registered again.')
    const open = [...this.#sessions.values()].filter((session) => session.sandbox.state !== 'none')
    await Promise.allSettled(open.map((session) => this.run(session.sessionId, async () => {})))
    await this.#deps.emptied?.()
  }

  async #ping(): Promise<void> {
    const running = [...this.#sessions.values()].filter((session) => session.sandbox.state === 'running')
    await Promise.allSettled([this.pool.ping(), ...running.map((session) => session.sandbox.ping())])
  }

  #every(ms: number, job: () => Promise<void>): void {
    const timer = setInterval(() => {
      job().catch((error) => this.#deps.logger.warn({ err: error }, `Background work failed: ${messageOf(error)}`))
    }, ms)
    timer.unref()
    this.#timers.push(timer)
  }
}

async function openWorkspace(session: LiveSession, signal?: AbortSignal): Promise<Workspace> {
  await session.openSandbox(signal)
  const { connection } = session.sandbox
  return {
    containerId: connection.containerId,
    epoch: session.epoch,
    listTools: () => connection.listTools(),
    callQuietly: (name, args) => session.sandbox.connection.callTool(name, args, { timeoutMs: QUIET_CALL_MS }),
    saveFiles: async () => void (await session.sandbox.checkpoint()),
    resolve: (paths) => session.sandbox.connection.resolve(paths)
  }
}
