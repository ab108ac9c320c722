/**
 * The sessions of this instance: lets callers work in a session's sandbox, keeps leases alive meanwhile, and shuts everything
 * down cleanly. It does not decide what runs. Invariant: a job runs only while this instance holds the session's lease.
 */
import { removeChatRun } from '../../code/run-log.ts'
import { messageOf } from '../../lib/errors.ts'
import { KeyedLock } from '../../lib/waiting/keyed-lock.ts'
import { shuttingDown } from '../../lib/waiting/shutting-down.ts'
import type { ToolResult } from '../../sandbox/port.ts'
import { borrowed, type Checkpoint } from '../../storage/checkpoint-store.ts'
import { sessionLost } from '../../storage/store-errors.ts'
import { type ForkedWork, forkedWork } from './forks/forked-work.ts'
import { Janitor } from './janitor.ts'
import { type EnterOptions, LiveSession, sessionBusy } from './live-session.ts'
import { openWorkspace, type Workspace } from './open-workspace.ts'
import { OwnContainers } from './own-containers.ts'
import { journal, type Recorded, runSandboxTool, type ToolCall } from './run-sandbox-tool.ts'
import { SandboxPlaces } from './sandbox-places.ts'
import { SandboxShutdown } from './sandbox-shutdown.ts'
import type { SessionsDeps, SessionsOptions } from './session-options.ts'
import type { SandboxContext } from './session-sandbox.ts'
import { WarmPool } from './warm-pool.ts'

const PING_EVERY_MS = 600_000
/** The default deadline. */
const STOP_WITHIN_MS = 25_000

/** A session that only this instance may act in. */
export interface HeldSession {
  readonly epoch: number
  /** Opens the sandbox. It is created, woken, repaired or taken over first if necessary. */
  workspace(signal?: AbortSignal): Promise<Workspace>
  /** Runs a call in the sandbox, which is opened first as for `workspace`, and records it in the event log. */
  runTool(call: ToolCall): Promise<ToolResult>
  /** Work in a copy of the workspace that waits for the person's decision. */
  readonly forks: ForkedWork
  /** Runs a call that does not go to the sandbox, and records it in the event log. */
  journal(callId: string, run: () => Promise<Recorded>, times?: number): Promise<ToolResult>
}

export class SessionManager {
  readonly #deps: SessionsDeps
  readonly #options: SessionsOptions
  readonly #sessions = new Map<string, LiveSession>()
  readonly #context: SandboxContext
  readonly #lock = new KeyedLock()
  readonly #own = new OwnContainers()
  readonly #timers: NodeJS.Timeout[] = []
  readonly pool: WarmPool
  readonly janitor: Janitor
  #shutdown: SandboxShutdown | undefined
  #deployment = ''
  /** The store's origin, as last seen; this instance's sandboxes are registered there. */
  #origin = ''
  #emptiedAt: Date | undefined
  #isSwept = false
  #stopping = false
  #stopped: Promise<void> | undefined

  constructor(given: SessionsDeps, options: SessionsOptions) {
    const deps = { ...given, engine: this.#own.watch(given.engine) }
    this.#deps = deps
    this.#options = options
    const made = new Set<string>()
    const deployment = () => this.#deployment
    const { engine, logger, instanceId } = deps
    const owner = async () => ({ deployment: await this.#knownDeployment(), instance: instanceId })
    this.pool = new WarmPool({ engine, owner, size: options.warmPoolSize, logger, made })
    const places = new SandboxPlaces({ deps, options, recycle: (id) => this.janitor.recycleForOther(id) })
    this.#context = { deps, options, pool: this.pool, places, made, owner }
    const session = (id: string) => this.#session(id)
    const done = (live: LiveSession) => this.#forget(live)
    const origin = () => this.#origin
    const inUse = () => new Set([...this.#sessions.values()].map(({ sandbox }) => sandbox.containerId))
    this.janitor = new Janitor({ deps, options, made, inUse, deployment, origin, session, done })
  }

  /** Needs a store that answers; the engine may come later. */
  async start(): Promise<void> {
    await this.#beat()
    this.pool.fill()
    this.#every(this.#options.leaseMs / 3, () => this.#beat())
    this.#every(this.#options.janitorIntervalMs, () => this.janitor.round())
    this.#every(PING_EVERY_MS, () => this.#ping())
    // Before that, the record of an instance that has just crashed has not expired.
    this.#timers.push(setTimeout(() => void this.janitor.round(), this.#options.leaseMs * 2 + 1000).unref())
    await this.janitor.round()
  }

  /**
   * Removes what dead instances have left and no session needs. It runs at every start, before the server is ready: a server that
   * is repeatedly started and killed must not collect containers.
   */
  async sweep(): Promise<void> {
    await this.#knownDeployment()
    await this.janitor.sweep()
    this.#isSwept = true
  }

  get isSwept(): boolean {
    return this.#isSwept
  }

  /** Runs a job while only this instance holds the session. The sandbox is not touched unless the job asks for it. */
  async hold<T>(sessionId: string, job: (hold: HeldSession) => Promise<T>, options?: EnterOptions): Promise<T> {
    if (this.#stopping) throw shuttingDown()
    const session = this.#session(sessionId)
    await session.enter(options)
    try {
      const checkRunning = () => {
        if (this.#stopping) throw shuttingDown()
      }
      const unlessStopping = async <R>(work: () => Promise<R>) => {
        checkRunning()
        return work()
      }
      return await job({
        epoch: session.epoch,
        workspace: (inner) => unlessStopping(() => openWorkspace(session, inner)),
        runTool: (call) => unlessStopping(() => runSandboxTool(session, call)),
        forks: forkedWork(session, checkRunning),
        journal: (callId, run, times) => journal(session, callId, run, { times })
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

  /**
   * Opens the files as last saved. It takes no lease: it moves no sandbox, does not count as use, and creates no record. If it is
   * `brief`, it may be what the open sandbox uses, which changes with the next commit; loading takes time with many files.
   */
  async openSaved(sessionId: string, { brief = false } = {}): Promise<Checkpoint> {
    const { store, checkpoints } = this.#deps
    const epoch = (await store.get(sessionId))?.epoch ?? 0
    const shared = brief ? this.#sessions.get(sessionId)?.sandbox.savedUnder(epoch) : undefined
    return shared ? borrowed(shared) : checkpoints.open(sessionId, epoch)
  }

  /** Call this when someone opens the session in a tab or connects again. It counts as activity, and no sandbox with a tab is paused. */
  attach(sessionId: string): () => void {
    const session = this.#session(sessionId)
    session.attach()
    void this.#deps.store.visit(sessionId).catch(() => {})
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

  /**
   * How many sessions `stop` has saved, the ones not saved yet, whose sandboxes are left for the next start, and how many sandboxes
   * are left in all: of this instance and, if it is the last one, of the deployment.
   */
  get ending(): { saved: number; unsaved: string[]; left: number } {
    const { saved = 0, unsaved = [], left = 0 } = this.#shutdown ?? {}
    return { saved, unsaved, left }
  }

  /** Number of sandboxes that this instance is connected to. */
  get liveSandboxes(): number {
    return [...this.#sessions.values()].filter(({ sandbox }) => sandbox.state !== 'none').length
  }

  /** Number of forks on this instance. */
  get openForks(): number {
    return this.#context.places.forks
  }

  /** Takes a place for the container of a program, and returns how to give it back. Throws if there is none. */
  readonly reserveRealm = (owner: string): Promise<() => void> => this.#context.places.reserveRealm(owner)

  /** Number of sessions in this instance's memory. */
  get known(): number {
    return this.#sessions.size
  }

  /** Deletes the session for good: container, files, log and record. */
  async destroy(sessionId: string): Promise<void> {
    const { store, engine, checkpoints, events, instanceId } = this.#deps
    const session = this.#session(sessionId)
    await session.locked(async () => {
      const taken = await store.acquire(sessionId, instanceId, this.#options.leaseMs)
      if (!taken.granted) throw sessionBusy()
      await session.loseLease()
      if (taken.record.containerId) await engine.remove(taken.record.containerId)
      await checkpoints.remove(sessionId, taken.record.epoch)
      await events.remove(sessionId, taken.record.epoch)
      await removeChatRun(events, sessionId)
      await store.remove(sessionId, taken.record.epoch)
      session.markGone()
    })
    this.#sessions.delete(sessionId)
  }

  /** When this instance noticed that the store was emptied. */
  get emptiedAt(): Date | undefined {
    return this.#emptiedAt
  }

  /** Whether the store was emptied since this instance started. */
  async isEmptied(): Promise<boolean> {
    if (this.#emptiedAt || this.#origin === '') return this.#emptiedAt !== undefined
    return (await this.#deps.store.origin()).id !== this.#origin
  }

  /** Sessions that have a sandbox here. */
  get openIds(): string[] {
    const open = [...this.#sessions.values()].filter(({ sandbox }) => sandbox.state !== 'none')
    return open.map(({ sessionId }) => sessionId)
  }

  /**
   * Releases what this instance still has of a session that the store lost, including its owner. Its last changes are not saved;
   * files that were saved before stay until they expire.
   */
  async releaseLost(sessionId: string): Promise<void> {
    const { store, engine, events, instanceId } = this.#deps
    const session = this.#session(sessionId)
    await session.locked(async () => {
      const here = session.sandbox.containerId
      const taken = await store.acquire(sessionId, instanceId, this.#options.leaseMs)
      if (!taken.granted) throw sessionBusy()
      await session.loseLease()
      const { containerId, epoch } = taken.record
      for (const id of new Set([containerId, here])) if (id) await engine.remove(id)
      await events.remove(sessionId, epoch)
      await removeChatRun(events, sessionId)
      await store.remove(sessionId, epoch)
      session.markGone(sessionLost())
    })
    this.#sessions.delete(sessionId)
  }

  /**
   * Saves and removes every container of this instance and, if it is the last one, also those of killed instances. What can't be
   * done in time is left for the next start.
   */
  stop(withinMs = STOP_WITHIN_MS): Promise<void> {
    this.#stopped ??= this.#stop(withinMs)
    return this.#stopped
  }

  async #stop(withinMs: number): Promise<void> {
    this.#stopping = true
    this.#deps.engine.stopStarting?.()
    for (const timer of this.#timers) clearInterval(timer)
    const late = new AbortController()
    const timer = setTimeout(() => late.abort(), withinMs)
    const isLate = new Promise((resolve) => late.signal.addEventListener('abort', resolve, { once: true }))
    const shutdown = new SandboxShutdown({
      deps: this.#deps,
      leaseMs: this.#options.leaseMs,
      sessions: [...this.#sessions.values()],
      late: late.signal,
      own: this.#own,
      deployment: () => this.#deployment
    })
    this.#shutdown = shutdown
    const work = Promise.allSettled([
      ...[...this.#sessions.values()].map((session) => session.closeFork()),
      this.pool.stop(),
      this.janitor.stop(),
      // Removes the containers of dead instances here too, in case the startup was interrupted before it did so.
      // Waits for the shutdown first, so that it skips sandboxes that are being recycled.
      shutdown.run().then(() => this.sweep())
    ])
    await Promise.race([work.then(() => this.#recycleLeftovers(shutdown, late.signal)), isLate])
    clearTimeout(timer)
    await shutdown.count().catch(() => {})
    await this.#deps.store.signOff(this.#deps.instanceId).catch(() => {})
  }

  async #recycleLeftovers(shutdown: SandboxShutdown, late: AbortSignal): Promise<void> {
    const { store, instanceId, logger } = this.#deps
    if (late.aborted) return
    try {
      if ((await store.instances()).some((id) => id !== instanceId)) return
      await this.janitor.recycleLeftovers((sessionId) => shutdown.note(sessionId))
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

  /** The janitor can't find a container without its deployment's label, so wait for the id before creating one. */
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
    await Promise.allSettled(sessions.map((session) => session.extendLease()))
    for (const session of sessions) this.#forget(session)
    if (this.#origin !== '' && this.#origin !== origin) await this.#registerAgain()
    this.#origin = origin
  }

  /** The store lost its data: register our sandboxes again, or nobody would ever recycle them. */
  async #registerAgain(): Promise<void> {
    this.#emptiedAt = new Date()
    this.#deps.logger.warn('The store was emptied; registering the sandboxes of this instance again.')
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
    }, ms).unref()
    this.#timers.push(timer)
  }
}
