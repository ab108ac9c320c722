/**
 * One instance of a server: started when first needed, restarted after a crash, stopped when idle. Owns when that happens; `open-
 * server.ts` owns how. Invariant: one process at a time, and a call that may have run is not repeated.
 */

import { setTimeout as delay } from 'node:timers/promises'
import { quotedLine } from '../../contract/hidden-characters.ts'
import type { ServerEntry } from '../catalog/server-entry.ts'
import type { StoredTool } from '../catalog/stored-tools.ts'
import { AppError, isAppError, messageOf } from '../lib/errors.ts'
import type { Logger } from '../lib/logger.ts'
import { backoffMs } from '../lib/waiting/backoff.ts'
import { withDeadline } from '../lib/waiting/deadline.ts'
import { PacedJob } from '../lib/waiting/paced-job.ts'
import { SingleFlight } from '../lib/waiting/single-flight.ts'
import type { StartGate } from '../lib/waiting/start-gate.ts'
import { Breaker, countFailure } from './breaker.ts'
import type { LiveServer } from './live-server.ts'
import type { ServerLog } from './server-log.ts'
import type { ServerState } from './server-state.ts'
import { longestStartMs, StartBudget, startOf } from './start-budget.ts'
import { certainlyNotRun, definitionChanged, endsConversation, isOddStatus } from './wire/call-failure.ts'
import type { CallInput, RawResult, RequestInput } from './wire/call-input.ts'

export interface ServerConnectionOptions {
  entry: ServerEntry
  log: ServerLog
  logger: Logger
  /** Number of tools in the index: a server that had tools and now has none is unhealthy. */
  toolsSeen(): number
  gate: StartGate
  /** `answersBy`: when it must have answered, in the time of `performance.now()`. */
  open(signal: AbortSignal, onToolsChanged: () => void, answersBy: number, onOvertime: () => void): Promise<LiveServer>
  onListed(tools: StoredTool[], facts: { live?: LiveServer; startMs?: number }): void
  onFailed(error: AppError): void
  /** Returns the message for callers about a failure to start. */
  tell?(code: string, reason: string): string
}

const START_TRIES = 2
const CALL_TRIES = 3
/** Calls in a row without an answer before further calls are refused for a while. */
const LOST_CALLS_TO_REST = 5
const RETRY = { firstMs: 200, maxMs: 2000 }
const RETIRE_MS = 30_000
/** Listing the tools costs more than the notification that they changed. */
const REFRESH = { firstMs: 1000, maxMs: 30_000 }

export class ServerConnection {
  readonly entry: ServerEntry
  readonly log: ServerLog
  readonly #options: ServerConnectionOptions
  readonly #breaker: Breaker
  /** Counts calls that hang or lose the server, also if it starts well each time. */
  readonly #lostCalls: Breaker
  readonly #refreshing = new PacedJob(() => this.#refresh(), REFRESH)
  #live: LiveServer | undefined
  /** No longer used for new calls; calls that run on a remote server still finish. */
  readonly #left = new Set<LiveServer>()
  readonly #starting = new SingleFlight<LiveServer>()
  #idleTimer: NodeJS.Timeout | undefined
  #usedAt = 0
  #busy = 0
  readonly #pulse = new SingleFlight<void>()
  #starts = 0
  #startedAt = 0
  #lastError: ServerState['lastError']
  #retired = false
  /** Rejects when the current start goes on in the background. */
  #overtime = new Promise<never>(() => {})

  constructor(options: ServerConnectionOptions) {
    this.#options = options
    this.entry = options.entry
    this.log = options.log
    this.#breaker = new Breaker(options.entry.name)
    this.#lostCalls = new Breaker(options.entry.name, { failuresToOpen: LOST_CALLS_TO_REST })
  }

  get state(): ServerState {
    const running = this.isRunning
    const pid = running ? this.#live?.pid : undefined
    return {
      state: this.#starting.running ? 'starting' : running ? 'running' : 'stopped',
      breaker: this.#lostCalls.state === 'closed' ? this.#breaker.state : this.#lostCalls.state,
      busy: this.#busy,
      starts: this.#starts,
      ...(running ? { startedAt: this.#startedAt } : {}),
      ...(pid === undefined ? {} : { pid }),
      ...(this.#lastError === undefined ? {} : { lastError: this.#lastError })
    }
  }

  get isRunning(): boolean {
    return this.#live?.isOpen === true
  }

  get busy(): number {
    return this.#busy
  }

  /** Settles when the start that is under way has ended. */
  get starting(): Promise<unknown> | undefined {
    return this.#starting.running?.catch(() => {})
  }

  /** A circuit breaker is open, and the time for a trial has not come. */
  get isResting(): boolean {
    return this.#breaker.state === 'open' || this.#lostCalls.state === 'open'
  }

  /** Starts the server if necessary; resolves to the tools that it really has. */
  async list(signal: AbortSignal): Promise<StoredTool[]> {
    return this.#during(async () => (await this.#acquire(signal)).tools)
  }

  /** Like `list`, but asks a running server again: it may hang, or have lost its tools. */
  async test(signal: AbortSignal): Promise<StoredTool[]> {
    return this.#during(async () => {
      if (!this.live) this.#breaker.succeeded()
      const before = this.#starts
      const live = await this.#acquire(signal)
      if (this.#starts > before) return live.tools
      try {
        const tools = await live.list(signal)
        this.#options.onListed(tools, {})
        return tools
      } catch (error) {
        // A server that does one thing at a time does not answer while it is busy; the deadlines of those calls show whether it
        // hangs.
        if (signal.aborted || this.#busy > 1) throw error
        this.#drop(live)
        throw this.#failure(error)
      }
    })
  }

  async call(input: CallInput): Promise<{ result: RawResult; attempts: number }> {
    return this.#withRetry(input, (live) => this.#callOn(live, input))
  }

  async request(input: RequestInput): Promise<RawResult> {
    return (await this.#withRetry({ ...input, mustNotRepeat: true }, (live) => live.request(input))).result
  }

  /** The running client, if there is one. */
  get live(): LiveServer | undefined {
    return this.#live?.isOpen ? this.#live : undefined
  }

  /** Prevents the idle stop until the returned function is called. */
  hold(): () => void {
    const held = Promise.withResolvers<void>()
    void this.#during(() => held.promise)
    return held.resolve
  }

  /** Takes no new calls; closes when the running ones have ended, or after a while without them. */
  async retire(waitMs = RETIRE_MS): Promise<void> {
    this.#retired = true
    const until = Date.now() + waitMs
    while (this.#busy > 0 && Date.now() < until) await delay(20, undefined, { ref: false })
    await this.stop()
  }

  async stop(): Promise<void> {
    clearTimeout(this.#idleTimer)
    this.#idleTimer = undefined
    const live = this.#live ?? (await this.#starting.running?.catch(() => undefined))
    this.#live = undefined
    // A second `stop` meanwhile waits for this one too.
    if (live) this.#left.add(live)
    await Promise.all([...this.#left].map((each) => each.close()))
    if (live) this.#left.delete(live)
    await this.log.flush({ final: true })
  }

  /** Retries if the call certainly did not run, or is safe to repeat. */
  async #withRetry<T>(
    { mustNotRepeat, signal }: Pick<CallInput, 'mustNotRepeat' | 'signal'>,
    job: (live: LiveServer) => Promise<T>
  ): Promise<{ result: T; attempts: number }> {
    return this.#during(async () => {
      this.#lostCalls.check()
      for (let attempt = 1; ; attempt++) {
        let live: LiveServer | undefined
        try {
          live = await this.#acquire(signal)
          const result = await job(live)
          this.#lostCalls.succeeded()
          return { result, attempts: attempt }
        } catch (error) {
          if (live && live.pid === undefined && endsConversation(error)) this.#drop(live)
          const startFailed = isAppError(error) && error.details.start === true
          const again = certainlyNotRun(error) || (!mustNotRepeat && isAppError(error, 'child_lost'))
          const isForbidden = isAppError(error, 'child_forbidden')
          const tries = isForbidden ? (endsConversation(error) ? 2 : 1) : CALL_TRIES
          if (!startFailed && again && attempt < tries && !signal.aborted) continue
          countFailure(this.#lostCalls, error)
          throw error
        }
      }
    })
  }

  async #callOn(live: LiveServer, input: CallInput): Promise<RawResult> {
    const { name } = this.entry
    if (!live.tools.some(({ name: known }) => known === input.tool))
      this.#options.onListed(await live.list(input.signal), {})
    const tool = live.tools.find(({ name: known }) => known === input.tool)
    if (tool === undefined) {
      const message = `The server "${name}" has no tool "${input.tool.slice(0, 100)}".`
      throw new AppError('not-found', 'unknown_tool', message)
    }
    if (input.mayRun && !(await input.mayRun(tool, live.tools))) throw definitionChanged(name, input.tool)
    try {
      return await live.call(input)
    } catch (error) {
      if (isAppError(error, 'child_timeout') || isOddStatus(error)) this.#suspect(live)
      this.#lastError = { at: Date.now(), message: messageOf(error) }
      throw error
    }
  }

  /** The next calls wait until it is known whether the server is alive; otherwise a hanging one would take them too. */
  #suspect(live: LiveServer): void {
    void this.#pulse.run(() => this.#stopIfHanging(live))
  }

  /** Stops a hanging server, so that the next call gets a new one. */
  async #stopIfHanging(live: LiveServer): Promise<void> {
    if (await live.isResponsive()) return
    this.#options.logger.warn({ server: this.entry.name }, 'The server no longer answers: stopping it.')
    this.#drop(live)
  }

  /** The next call gets a new one. Other calls that run on a remote server continue. */
  #drop(live: LiveServer): void {
    if (this.#live === live) this.#live = undefined
    this.#left.add(live)
    const idle = live.pid === undefined ? live.idle() : Promise.resolve()
    void idle.then(() => live.close()).finally(() => this.#left.delete(live))
  }

  async #acquire(signal: AbortSignal): Promise<LiveServer> {
    if (this.#retired) {
      const message = `The server "${this.entry.name}" was changed or removed.`
      throw new AppError('unavailable', 'server_retired', message, { details: { sent: false, start: true } })
    }
    if (this.#pulse.running) await this.#pulse.running
    if (this.#live?.isOpen) return this.#live
    void this.#starting.run(() => this.#start())
    // A waiting caller may give up; the start continues for the others.
    return withDeadline(
      {
        ...{ what: startOf(this.entry), ms: longestStartMs(this.entry) },
        signal,
        code: 'server_start_timeout'
      },
      () => Promise.race([this.#starting.running ?? Promise.reject(signal.reason), this.#overtime])
    )
  }

  async #start(): Promise<LiveServer> {
    this.#live = undefined
    const budget = new StartBudget(this.entry)
    this.#overtime = budget.overtime
    for (let attempt = 1; ; attempt++) {
      try {
        this.#breaker.check()
        return await this.#startOnce(budget)
      } catch (error) {
        const failure = this.#failure(error)
        const final =
          failure.details.permanent === true || failure.kind === 'forbidden' || failure.code === 'server_resting'
        if (final || budget.isOver || attempt === START_TRIES) throw failure
        await delay(backoffMs(attempt, RETRY), undefined, { ref: false })
      }
    }
  }

  async #startOnce(budget: StartBudget): Promise<LiveServer> {
    const began = performance.now()
    const { gate, open } = this.#options
    const ask = () => this.#refreshing.ask()
    const live = await budget.through(gate, (signal, by) => open(signal, ask, by, budget.onOvertime))
    this.#starts++
    this.#startedAt = Date.now()
    if (live.tools.length === 0 && this.#options.toolsSeen() > 0) {
      await live.close()
      const message = `The server "${this.entry.name}" runs but no longer lists any of its tools.`
      throw new AppError('unavailable', 'tools_missing', message)
    }
    this.#live = live
    this.#breaker.succeeded()
    this.#lastError = undefined
    const startMs = Math.round(performance.now() - began)
    this.#options.onListed(live.tools, { live, startMs })
    return live
  }

  #failure(error: unknown): AppError {
    const text = quotedLine(this.log.redact(messageOf(error)))
    const known = isAppError(error) ? error : new AppError('unavailable', 'server_failed', text)
    const told = this.#options.tell?.(known.code, text) ?? text
    const failure = new AppError(known.kind, known.code, told, {
      details: { ...known.details, sent: false, start: true }
    })
    if (failure.code === 'server_resting') return failure // not why it failed
    this.#lastError = { at: Date.now(), message: text }
    // A server that can't be started at all costs nothing to try, and works as soon as its entry is fixed.
    if (failure.details.permanent !== true) this.#breaker.failed(failure)
    this.#options.onFailed(failure)
    return failure
  }

  async #refresh(): Promise<void> {
    const live = this.#live
    if (!live?.isOpen) return
    try {
      this.#options.onListed(await live.list(), {})
    } catch (error) {
      if (!live.isOpen) return
      this.#options.logger.warn({ server: this.entry.name }, `Could not list its changed tools: ${messageOf(error)}`)
    }
  }

  async #during<T>(job: () => Promise<T>): Promise<T> {
    this.#busy++
    try {
      return await job()
    } finally {
      this.#busy--
      this.#usedAt = performance.now()
      this.#watchIdle(this.entry.idleMs)
    }
  }

  /** One shared timer: a timer per call would cost more than the rest. When it fires, it checks whether the server is still idle. */
  #watchIdle(ms: number): void {
    if (this.#idleTimer || this.entry.idleMs <= 0 || this.#retired) return
    this.#idleTimer = setTimeout(() => {
      this.#idleTimer = undefined
      const leftMs = this.#usedAt + this.entry.idleMs - performance.now()
      if (this.#busy > 0) return
      if (leftMs >= 1) this.#watchIdle(leftMs)
      else void this.stop()
    }, ms).unref()
  }
}
