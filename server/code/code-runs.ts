/**
 * The runs of programs: starts them, lets their owner poll and cancel them, and continues them after an answer or a crash. Owns who
 * drives a run; an attempt drives it in one realm. Invariant: a run that waits for a person costs nothing but its log.
 */
import { randomUUID } from 'node:crypto'
import { headOf } from '../lib/cut-text.ts'
import { AppError } from '../lib/errors.ts'
import type { Logger } from '../lib/logger.ts'
import { KeyedLock } from '../lib/waiting/keyed-lock.ts'
import { wireError } from '../lib/web/wire-error.ts'
import type { ApprovalInbox } from '../policy/approval-inbox.ts'
import type { EventLog } from '../storage/event-log.ts'
import type { KeyValueStore } from '../storage/key-value-store.ts'
import { type ActiveRun, type RunReport, settledOrWaiting } from './active-run.ts'
import { driveRun } from './drive-run.ts'
import { newProgram } from './new-program.ts'
import type { ProgramCalls } from './program-call.ts'
import type { RealmProcess } from './realms/code-channel.ts'
import type { RealmRequest } from './realms/realm-queue.ts'
import { madeCalls } from './run-answer.ts'
import { RunFailures } from './run-failures.ts'
import { type RunAsker, type RunEntry, RunIndex } from './run-index.ts'
import { RunLog, type RunState, unknownRun } from './run-log.ts'
import { type RunLimits, RunQuota } from './run-quota.ts'
import { DEFAULT_TIMES, type RunTimes } from './run-times.ts'
import { StoredRuns } from './stored-runs.ts'

export interface CodeRunsOptions {
  events: EventLog
  keyValues: KeyValueStore
  inbox: ApprovalInbox
  openRealm(request: RealmRequest): Promise<RealmProcess>
  /** The same for all processes that have the same servers. */
  home: string
  /** The settings that limit the size of conversations. */
  limits: RunLimits
  logger: Logger
  times?: Partial<RunTimes>
}

const FREE = { leaseUntil: 0 }
const MAX_HEAD_CHARS = 600

export interface NewRun {
  code: string
  /** Unchecked; undefined means the default. */
  timeoutMs?: unknown
  asker: RunAsker
  calls: ProgramCalls
}

export class CodeRuns {
  readonly #options: CodeRunsOptions
  readonly #times: RunTimes
  readonly #index: RunIndex
  readonly #stored: StoredRuns
  readonly #quota: RunQuota
  readonly #failures: RunFailures
  readonly #instance = randomUUID()
  readonly #active = new Map<string, ActiveRun>()
  #following: NodeJS.Timeout | undefined
  readonly #taking = new Map<string, Promise<ActiveRun | RunLog>>()
  readonly #stopping = new Set<Promise<void>>()
  readonly #starting = new KeyedLock()
  #isClosed = false

  constructor(options: CodeRunsOptions) {
    this.#options = options
    this.#times = { ...DEFAULT_TIMES, ...options.times }
    this.#index = new RunIndex(options.keyValues)
    this.#stored = new StoredRuns({ ...options, times: this.#times })
    this.#quota = new RunQuota(options.events, this.#index, options.limits)
    this.#failures = new RunFailures(this.#times)
  }

  /** One after another for each owner, so that each counts those before it. */
  start(run: NewRun): Promise<string> {
    return this.#starting.run(run.asker.owner, () => this.#start(run))
  }

  async #start({ code, timeoutMs, asker, calls }: NewRun): Promise<string> {
    const { owner } = asker
    const program = newProgram({ code, timeoutMs })
    await this.#quota.checkStart(owner, this.#times.keepMs)
    // The same moment everywhere: a task's lifetime is the time between this and its end.
    const now = program.startedAt
    const runId = randomUUID()
    const expiresAt = now + this.#times.expireMs
    const lease = { holder: this.#instance, leaseUntil: now + this.#times.leaseMs }
    const shown = { head: headOf(code, MAX_HEAD_CHARS), calls: 0, reason: '' }
    const about = { ...asker, ...shown, home: this.#options.home, cards: [] }
    // First, so that a crash between the two leaves no log that nobody finds.
    await this.#index.add(runId, { ...about, createdAt: now, expiresAt, status: 'running', ...lease, endedAt: 0 })
    const log = await RunLog.create(this.#quota.limited(runId, owner), runId, program)
    this.#drive(log, { owner, expiresAt }, calls)
    return runId
  }

  /** Waits until the run has ended or waits for a person, but not too long. Continues a run that nobody drives. */
  async report(
    runId: string,
    { owner, calls, signal, onProgress }: ReportOptions,
    waitMs = this.#times.answerMs
  ): Promise<RunReport> {
    const until = Date.now() + waitMs
    const entry = await this.#index.get(runId)
    if (entry?.owner !== owner) throw unknownRun(runId)
    const active = this.#active.get(runId) ?? (await this.#continue(runId, calls))
    if (active instanceof RunLog) {
      const { state } = active
      const status = state.end ? 'ended' : entry.status === 'ended' ? 'running' : entry.status
      return { runId, status, state, expiresAt: entry.expiresAt, queued: this.#failures.reasonOf(runId) }
    }
    // The attempt is about to see the answer too.
    if (active.isWaiting && (await this.#isAnswered(cardsOf(active.log.state)))) active.isWaiting = false
    if (onProgress) active.onProgress.add(onProgress)
    try {
      await settledOrWaiting(active, waitMs, signal)
    } finally {
      if (onProgress) active.onProgress.delete(onProgress)
    }
    const { state } = active.log
    const left = until - Date.now()
    // The answer came while it gave its realm back: it goes on in another one.
    const isGone = !this.#active.has(runId) && !this.#isClosed && !signal?.aborted
    if (!state.end && !active.isWaiting && isGone && left > 0)
      return this.report(runId, { owner, calls, signal, onProgress }, left)
    const status = state.end ? 'ended' : active.isWaiting ? 'waiting' : 'running'
    const queued = active.queued ?? this.#failures.reasonOf(runId)
    return { runId, status, state, expiresAt: active.expiresAt, queued }
  }

  /** Ends a run and the calls that are under way, also if another instance drives it. */
  async cancel(runId: string, owner: string): Promise<RunReport> {
    const entry = await this.#index.get(runId)
    if (entry?.owner !== owner) throw unknownRun(runId)
    const active = this.#active.get(runId)
    const log = active?.log ?? (await RunLog.load(this.#options.events, runId))
    await log.end({ ok: false, code: 'code_cancelled', message: 'The run was cancelled.' })
    active?.stop.abort()
    await active?.settled
    await this.#over(log)
    await this.#stored.letGo(runId, this.#instance)
    const { state } = await RunLog.load(this.#options.events, runId)
    return { runId, status: 'ended', state, expiresAt: entry.expiresAt }
  }

  /** Stops all attempts. Their runs continue when somebody asks for them again. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#following)
    for (const { stop } of this.#active.values()) stop.abort()
    await Promise.all([...this.#active.values()].map(({ settled }) => settled))
    await Promise.all(this.#stopping)
  }

  #release(realm: RealmProcess): void {
    const stopping = realm
      .stop()
      .catch((error) => this.#options.logger.warn({ err: error }, 'A realm could not be stopped.'))
      .finally(() => this.#stopping.delete(stopping))
    this.#stopping.add(stopping)
  }

  /**
   * Takes over a run whose answer has arrived, or whose instance is gone. Resolves to its log if it can't be continued. Callers at the
   * same moment get the same attempt.
   */
  #continue(runId: string, calls: ProgramCalls): Promise<ActiveRun | RunLog> {
    const taking = this.#taking.get(runId) ?? this.#take(runId, calls).finally(() => this.#taking.delete(runId))
    this.#taking.set(runId, taking)
    return taking
  }

  async #take(runId: string, calls: ProgramCalls): Promise<ActiveRun | RunLog> {
    const entry = await this.#index.get(runId)
    const isWaiting = entry?.status === 'waiting' && !(await this.#isAnswered(entry.cards))
    const now = Date.now()
    const log = await this.#load(runId, entry, now)
    if (log.state.end) {
      await this.#over(log)
      return log
    }
    if (isWaiting && entry.expiresAt <= now) {
      const hours = Math.round(this.#times.expireMs / 3_600_000)
      await log.end({ ok: false, code: 'code_expired', message: `Nobody decided within ${hours} hours.` })
      await this.#over(log)
    }
    if (isWaiting) return log
    const taken = await this.#index.change(runId, ({ leaseUntil, status }) => {
      const isFree = leaseUntil <= now || status === 'waiting'
      const { leaseMs, expireMs } = this.#times
      const lease = { holder: this.#instance, leaseUntil: now + leaseMs, status: 'running' as const, reason: '' }
      // Somebody has decided: what the program asks next has a whole day again.
      if (status === 'waiting') Object.assign(lease, { expiresAt: now + expireMs })
      return isFree && status !== 'ended' ? lease : undefined
    })
    return taken ? (this.#active.get(runId) ?? this.#drive(log, taken, calls)) : log
  }

  async #load(runId: string, entry: RunEntry | undefined, now: number): Promise<RunLog> {
    const events = this.#quota.limited(runId, entry?.owner ?? '')
    const isStarting = !entry || entry.leaseUntil > now
    const log = isStarting ? await RunLog.load(events, runId) : await this.#stored.load(runId, events)
    if (!log) throw unknownRun(runId)
    return log
  }

  /** From now on, continues runs of this home without a client: those with an answer, and those whose process has died. Ends expired ones. */
  follow(callsOf: (asker: RunAsker) => ProgramCalls): void {
    const report = (error: unknown) =>
      this.#options.logger.debug({ err: error }, 'A waiting run could not be continued.')
    let isLooking = false
    const look = async () => {
      for (const { runId, entry } of await this.#index.list())
        if (await this.#isDue(runId, entry)) await this.#continue(runId, callsOf(entry)).catch(report)
    }
    const looked = () => {
      isLooking = false
    }
    const begin = () => {
      if (!isLooking) void look().catch(report).finally(looked)
      isLooking = true
    }
    this.#following ??= setInterval(begin, this.#times.watchMs).unref()
  }

  /** Reads only what is in the list: a log may be large. */
  async #isDue(runId: string, { home, status, cards, expiresAt, leaseUntil }: RunEntry): Promise<boolean> {
    if (this.#isClosed || home !== this.#options.home || status === 'ended' || this.#active.has(runId)) return false
    const now = Date.now()
    if (status === 'running') return leaseUntil <= now
    return expiresAt <= now || (await this.#isAnswered(cards))
  }

  async #isAnswered(cards: readonly string[]): Promise<boolean> {
    for (const card of cards) if ((await this.#options.inbox.answerTo(card)) !== undefined) return true
    return false
  }

  #drive(log: RunLog, { owner, expiresAt }: Pick<ActiveRun, 'owner' | 'expiresAt'>, calls: ProgramCalls): ActiveRun {
    const run: ActiveRun = {
      ...{ log, owner, queued: undefined, expiresAt, stop: new AbortController(), isWaiting: false },
      ...{ listeners: new Set(), onProgress: new Set(), settled: Promise.resolve() }
    }
    if (this.#isClosed) throw new AppError('unavailable', 'shutting_down', 'The gateway is stopping.')
    this.#active.set(log.runId, run)
    const { leaseMs, watchMs } = this.#times
    const heart = setInterval(() => void this.#renew(run), Math.min(leaseMs / 3, watchMs)).unref()
    run.settled = this.#attempt(run, calls)
      .catch((error) => this.#failed(run, error))
      .finally(() => {
        clearInterval(heart)
        this.#active.delete(log.runId)
        for (const listener of run.listeners) listener()
      })
    return run
  }

  async #attempt(run: ActiveRun, calls: ProgramCalls): Promise<void> {
    const { inbox, logger } = this.#options
    const openRealm = (signal: AbortSignal) => this.#openRealm(run, signal)
    const { lingerMs, pollMs, expireMs } = this.#times
    const cardExpiresAt = () => {
      run.expiresAt = Date.now() + expireMs
      return run.expiresAt
    }
    const options = {
      ...{ log: run.log, openRealm, calls, inbox, lingerMs, pollMs, cardExpiresAt, logger },
      onReleased: (realm: RealmProcess) => this.#release(realm),
      onProgress: (text: string) => {
        for (const listener of run.onProgress) listener(text)
      },
      onWaiting: (isWaiting: boolean) => {
        run.isWaiting = isWaiting
        if (isWaiting) for (const listener of run.listeners) listener()
      }
    }
    const end = await driveRun(options, run.stop.signal)
    this.#failures.forget(run.log.runId)
    if (end === 'waiting') {
      const waiting = { status: 'waiting', leaseUntil: 0, expiresAt: run.expiresAt } as const
      const [cards, calls] = [cardsOf(run.log.state), madeCalls(run.log.state)]
      await this.#index.change(run.log.runId, (entry) => this.#ours(entry, { ...waiting, cards, calls }))
    } else if (end === 'ended') await this.#over(run.log)
    else await this.#index.change(run.log.runId, ({ holder }) => (holder === this.#instance ? FREE : undefined))
  }

  #ours({ holder, status }: RunEntry, change: Partial<RunEntry>): Partial<RunEntry> | undefined {
    return holder === this.#instance && status !== 'ended' ? change : undefined
  }

  async #openRealm(run: ActiveRun, signal: AbortSignal): Promise<RealmProcess> {
    const onQueued = (reason: string) => {
      run.queued = reason
      for (const listener of run.onProgress) listener(reason)
    }
    try {
      return await this.#options.openRealm({ signal, owner: run.owner, onQueued })
    } finally {
      run.queued = undefined
    }
  }

  async #failed(run: ActiveRun, error: unknown): Promise<void> {
    const { runId, state } = run.log
    const { code, message } = wireError(error, this.#options.logger)
    const retryAt = this.#failures.retryAt(runId, state, error)
    if (retryAt !== undefined) {
      const reason = `It can't continue now, and is tried again. ${message}`
      await this.#index.change(runId, (entry) => this.#ours(entry, { leaseUntil: retryAt, reason })).catch(() => {})
      return
    }
    this.#failures.forget(runId)
    await run.log.end({ ok: false, code, message }).catch(() => {})
    await this.#over(run.log).catch(() => {})
  }

  async #renew({ log, stop, queued: reason = '' }: ActiveRun): Promise<void> {
    const now = { leaseUntil: Date.now() + this.#times.leaseMs, calls: madeCalls(log.state), reason }
    const entry = await this.#index.get(log.runId).catch(() => undefined)
    if (entry === undefined) return
    if (entry.holder !== this.#instance || entry.status === 'ended') stop.abort()
    else if (entry.status === 'running')
      await this.#index.change(log.runId, (stored) => this.#ours(stored, now)).catch(() => {})
  }

  #over(log: RunLog): Promise<void> {
    return this.#stored.over(log, this.#instance)
  }
}

function cardsOf({ calls }: RunState): string[] {
  return [...calls.values()].flatMap(({ asked }) => asked?.cardId ?? [])
}

export interface ReportOptions {
  owner: string
  /** Used if the run must be continued. */
  calls: ProgramCalls
  signal?: AbortSignal | undefined
  onProgress?: ((text: string) => void) | undefined
}
