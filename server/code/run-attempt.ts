/**
 * Drives a run in one realm: replays what its log has, and makes the calls that are new. Owns the realm and the calls under way.
 * Invariants: a result is in the log before the program gets it, and a call is in the log before it leaves. So whatever ends this
 * attempt, the next one gives the program the same answers in the same order, and repeats no call by itself.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { CODE_LIMITS } from '../../workspace-server/code/code-protocol.ts'
import { AppError, isAppError } from '../lib/errors.ts'
import type { Logger } from '../lib/logger.ts'
import { withDeadline } from '../lib/waiting/deadline.ts'
import { PausableTimer } from '../lib/waiting/pausable-timer.ts'
import { StartGate } from '../lib/waiting/start-gate.ts'
import { wireError } from '../lib/web/wire-error.ts'
import type { ApprovalInbox } from '../policy/approval-inbox.ts'
import { boundedOutcome } from './call-outcome.ts'
import { ApprovalPending, type CallOutcome, LostRun, type ProgramCall, type ProgramCalls } from './program-call.ts'
import { programCard } from './program-card.ts'
import { CodeChannel, type ProgramEnd, type RealmProcess } from './realms/code-channel.ts'
import { departed, notReplayable } from './run-departure.ts'
import { isSameCall, type RunEvent, type RunLog } from './run-log.ts'

export interface AttemptOptions {
  log: RunLog
  openRealm(signal: AbortSignal): Promise<RealmProcess>
  calls: ProgramCalls
  inbox: Pick<ApprovalInbox, 'post' | 'answerTo' | 'take'>
  /** How long the realm is kept while the program waits only for a person. */
  lingerMs: number
  /** How often the inbox is asked. */
  pollMs: number
  /** When a card that is posted now expires. */
  cardExpiresAt(): number
  logger: Logger
  onProgress(text: string): void
  /** A line that was not printed before. */
  onPrinted?(line: string): void
  /** The realm is no longer used and must be stopped. */
  onReleased(realm: RealmProcess): void
  /** Called when the run begins to wait only for a person, and when that ends. */
  onWaiting(isWaiting: boolean): void
}

/**
 * `ended`: the end is in the log. `waiting`: for a person, without a realm. `lost`: another instance drives the run. `realm_lost`:
 * the container is gone; try again. `stopped`: by the signal.
 */
export type AttemptEnd = 'ended' | 'waiting' | 'lost' | 'realm_lost' | 'stopped'

const READY_MS = 60_000
const AT_ONCE = 8

export class RunAttempt {
  readonly #options: AttemptOptions
  readonly #log: RunLog
  readonly #stop = new AbortController()
  readonly #over = Promise.withResolvers<AttemptEnd>()
  readonly #gate = new StartGate(AT_ONCE)
  /** The calls that the program waits for. */
  readonly #open = new Map<number, 'running' | 'asked' | 'sleeping'>()
  readonly #running = new Set<Promise<void>>()
  #channel: CodeChannel | undefined
  #lines: string[] = []
  #replayedLines = 0
  #linger: NodeJS.Timeout | undefined
  /** The time of the program. Waiting for a sandbox or a person does not count. */
  readonly #clock: PausableTimer
  #isPolling = false
  #isEnding = false
  /** Counts all results of the run, also those of earlier attempts. */
  #resultChars = 0

  constructor(options: AttemptOptions) {
    this.#options = options
    this.#log = options.log
    const { timeoutMs = 0 } = this.#log.state.program ?? {}
    this.#clock = new PausableTimer(timeoutMs, () => this.#timeout(timeoutMs))
  }

  async run(signal: AbortSignal): Promise<AttemptEnd> {
    const stopped = () => this.#finish('stopped')
    if (signal.aborted) return 'stopped'
    signal.addEventListener('abort', stopped, { once: true })
    let realm: RealmProcess | undefined
    try {
      const opening = this.#options.openRealm(AbortSignal.any([signal, this.#stop.signal]))
      const first = await Promise.race([opening, this.#over.promise])
      if (typeof first === 'string') {
        void opening.then((late) => this.#options.onReleased(late)).catch(() => {})
        return first
      }
      realm = first
      await this.#begin(realm)
      return await this.#over.promise
    } catch (error) {
      if (signal.aborted) return 'stopped'
      if (error instanceof LostRun) return 'lost'
      throw error
    } finally {
      this.#clock.pause()
      clearTimeout(this.#linger)
      signal.removeEventListener('abort', stopped)
      this.#stop.abort()
      this.#channel?.close()
      // Stopping a container takes half a second. Nobody has to wait for it.
      if (realm) this.#options.onReleased(realm)
    }
  }

  async #begin(realm: RealmProcess): Promise<void> {
    const { state } = this.#log
    const channel = new CodeChannel(realm, {
      call: (call) => this.#called(call),
      log: (line) => this.#printed(line),
      progress: (text) => this.#options.onProgress(text),
      end: (end) => void this.#ended(end)
    })
    this.#channel = channel
    const deadline = { what: 'the sandbox of the program', ms: READY_MS, code: 'code_realm_slow' }
    const runtime = await withDeadline(deadline, () => channel.ready)
    if (state.runtime === undefined) await this.#append([{ type: 'run:runtime', data: { runtime } }], ['runtime'])
    const problem = notReplayable(state, runtime)
    if (problem) return this.#endRun(problem)
    const { code = '', seed = 0, startedAt = 0 } = state.program ?? {}
    this.#clock.resume()
    channel.run({ code, seed, now: startedAt })
    for (const n of state.order) this.#answer(n)
  }

  #called(call: ProgramCall): void {
    const known = this.#log.state.calls.get(call.n)
    if (known && !isSameCall(known.call, call)) void this.#endRun(departed(known.call, call))
    else if (!known?.done) this.#track(known?.asked ? this.#waitForAnswer(call.n) : this.#make(call))
  }

  #track(work: Promise<void>): void {
    const tracked = work.catch((error) => this.#broken(error)).finally(() => this.#running.delete(tracked))
    this.#running.add(tracked)
  }

  async #make(call: ProgramCall): Promise<void> {
    this.#setOpen(call.n, call.kind === 'sleep' ? 'sleeping' : 'running')
    try {
      const outcome = await this.#outcomeOf(call)
      if (!this.#log.state.calls.get(call.n)?.done) await this.#record(call, outcome)
      this.#closeCall(call.n)
    } catch (error) {
      if (!(error instanceof ApprovalPending)) throw error
      await this.#ask(call, error)
    }
  }

  async #outcomeOf(call: ProgramCall): Promise<CallOutcome> {
    const { signal } = this.#stop
    if (call.n > CODE_LIMITS.calls) {
      return { ok: false, code: 'code_too_many_calls', message: `A program may make ${CODE_LIMITS.calls} calls.` }
    }
    if (call.kind === 'sleep') {
      await delay(Number(call.args.ms) || 0, undefined, { signal })
      return { ok: true, value: null }
    }
    const starts = this.#log.state.calls.get(call.n)?.starts ?? 0
    const hooks = {
      signal,
      interruptions: starts,
      beforeSending: () => this.#append([{ type: 'run:started', data: { call } }], [`started:${call.n}:${starts}`]),
      record: (outcome: CallOutcome) => this.#record(call, boundedOutcome(outcome, this.#resultChars)),
      decided: (hash: string) => this.#log.state.calls.get(call.n)?.decisions.findLast((each) => each.hash === hash)
    }
    try {
      const outcome = await this.#gate.run(() => this.#options.calls.run(call, hooks))
      return this.#log.state.calls.get(call.n)?.done?.outcome ?? boundedOutcome(outcome, this.#resultChars)
    } catch (error) {
      // A call that we broke off is not over: the next attempt must not take it for failed.
      if (error instanceof ApprovalPending || error instanceof LostRun || signal.aborted) throw error
      const { code, message } = wireError(error, this.#options.logger)
      return { ok: false, code, message }
    }
  }

  /** The program gets results in the order of the log. */
  async #record(call: ProgramCall, outcome: CallOutcome): Promise<void> {
    await this.#append([{ type: 'run:done', data: { call, outcome } }], [`done:${call.n}`])
    this.#answer(call.n)
  }

  #closeCall(n: number): void {
    this.#open.delete(n)
    this.#checkIdle()
  }

  #answer(n: number): void {
    const done = this.#log.state.calls.get(n)?.done
    if (done === undefined) return
    const { outcome, at } = done
    const answer = outcome.ok ? { ok: true as const, value: JSON.stringify(outcome.value) ?? 'null' } : outcome
    if (answer.ok) this.#resultChars += answer.value.length
    this.#channel?.answer(n, at, answer)
  }

  async #ask(call: ProgramCall, { card }: ApprovalPending): Promise<void> {
    const { inbox, cardExpiresAt } = this.#options
    const full = programCard(this.#log, call, card, cardExpiresAt())
    const place = await inbox.post(full).catch((error: unknown) => {
      if (isAppError(error)) return error
      throw error
    })
    if (place instanceof AppError) {
      await this.#record(call, { ok: false, code: place.code, message: place.message })
      return this.#closeCall(call.n)
    }
    const asked = { cardId: full.id, hash: card.hash, place }
    const known = this.#log.state.calls.get(call.n)
    await this.#append(
      [{ type: 'run:asked', data: { call, asked } }],
      [`asked:${call.n}:${known?.decisions.length ?? 0}`]
    )
    await this.#waitForAnswer(call.n)
  }

  async #waitForAnswer(n: number): Promise<void> {
    // The run may be continued because the answer is there. Then it does not wait.
    this.#open.set(n, 'running')
    if (await this.#look(n)) return
    this.#setOpen(n, 'asked')
    if (!this.#isPolling) void this.#poll().catch((error) => this.#broken(error))
  }

  /** Looks for answers while a card is open. */
  async #poll(): Promise<void> {
    this.#isPolling = true
    const { signal } = this.#stop
    while (!signal.aborted && [...this.#open.values()].includes('asked')) {
      for (const [n, state] of this.#open) if (state === 'asked') await this.#look(n)
      await delay(this.#options.pollMs, undefined, { signal }).catch(() => {})
    }
    this.#isPolling = false
  }

  /** Returns whether there was an answer. */
  async #look(n: number): Promise<boolean> {
    const { call, asked } = this.#log.state.calls.get(n) ?? {}
    if (!call || !asked) return false
    const answer = await this.#options.inbox.answerTo(asked.cardId)
    if (answer === undefined || this.#stop.signal.aborted) return false
    const decision = {
      hash: asked.hash,
      approved: answer.approved,
      ...(answer.reason ? { reason: answer.reason } : {})
    }
    await this.#append([{ type: 'run:decided', data: { n, decision } }], [`decided:${asked.cardId}`])
    await this.#options.inbox.take(asked.cardId, asked.place)
    this.#track(this.#make(call))
    return true
  }

  #setOpen(n: number, state: 'running' | 'asked' | 'sleeping'): void {
    this.#open.set(n, state)
    this.#checkIdle()
  }

  /** Gives the realm back if the program waits only for a person. */
  #checkIdle(): void {
    const states = [...this.#open.values()]
    const isWaiting = states.length > 0 && states.every((state) => state === 'asked')
    clearTimeout(this.#linger)
    if (isWaiting) {
      this.#clock.pause()
      this.#linger = setTimeout(() => this.#finish('waiting'), this.#options.lingerMs)
    } else if (!this.#stop.signal.aborted) this.#clock.resume()
    this.#options.onWaiting(isWaiting)
  }

  #printed(line: string): void {
    // The program prints the same again while it is replayed.
    if (this.#replayedLines < this.#log.state.logs.length) this.#replayedLines++
    else {
      this.#lines.push(line)
      this.#options.onPrinted?.(line)
    }
  }

  /**
   * Stores what the program has printed together with the next event. Throws if the run has ended, here or elsewhere, or if another
   * instance drives it: then no call may leave.
   */
  async #append(events: RunEvent[], keys: string[]): Promise<void> {
    if (this.#stop.signal.aborted || this.#isEnding) throw new LostRun()
    const lines = this.#lines.splice(0)
    this.#replayedLines += lines.length
    const output: RunEvent[] = lines.length > 0 ? [{ type: 'run:output', data: { lines } }] : []
    try {
      await this.#log.append([...output, ...events], [...output.map(() => undefined), ...keys])
    } catch (error) {
      throw isAppError(error, 'event_exists') ? new LostRun() : error
    }
    if (this.#log.state.end || !this.#log.isAlone || this.#isEnding) throw new LostRun()
  }

  async #ended(end: ProgramEnd): Promise<void> {
    // A program may end without waiting for its calls. What has left is still recorded.
    const isLost = !end.ok && end.code === 'code_realm_ended'
    for (const [n, state] of this.#open) if (state !== 'running') this.#open.delete(n)
    while (!this.#stop.signal.aborted && [...this.#open.values()].includes('running')) {
      await Promise.race([...this.#running, this.#over.promise])
    }
    if (isLost) return this.#finish('realm_lost')
    const made = this.#channel?.calls ?? 0
    const missing = [...this.#log.state.calls.values()].find(({ call }) => call.n > made)
    await this.#endRun(missing ? departed(missing.call, undefined) : end)
  }

  #timeout(timeoutMs: number): void {
    const message = `The program took longer than ${timeoutMs / 1000} s.`
    void this.#endRun({ ok: false, code: 'code_timeout', message })
  }

  async #endRun(end: ProgramEnd): Promise<void> {
    if (this.#stop.signal.aborted || this.#isEnding) return
    this.#isEnding = true
    this.#channel?.close()
    try {
      const isOurs = await this.#log.end(end, this.#lines.splice(0))
      for (const { asked } of this.#log.state.calls.values())
        if (asked) await this.#options.inbox.take(asked.cardId, asked.place)
      this.#finish(isOurs ? 'ended' : 'lost')
    } catch (error) {
      this.#broken(error)
    }
  }

  #broken(error: unknown): void {
    if (error instanceof LostRun) {
      if (!this.#isEnding) this.#finish('lost')
    } else if (!this.#stop.signal.aborted) {
      this.#over.reject(error)
      this.#stop.abort()
    }
  }

  #finish(end: AttemptEnd): void {
    this.#over.resolve(end)
    this.#stop.abort()
  }
}
