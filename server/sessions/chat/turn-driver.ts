/**
 * Carries one session's turn on: looks at the log, does what comes next, and stops when the turn waits for a human or is over.
 * Keeps nothing that a restart would miss; any instance that is woken comes to the same next action. One drive at a time.
 */
import type { TurnEndReason } from '../../../contract/events.ts'
import { type CallEntry, callOf } from '../../../contract/transcript.ts'
import { MAX_COMMANDS_AT_ONCE } from '../../../workspace-server/protocol.ts'
import { modelHistory, stepsInTurn } from '../../agent/model-history.ts'
import { modelStep } from '../../agent/model-step.ts'
import { type NextAction, nextAction } from '../../agent/next-action.ts'
import { systemPromptFor } from '../../agent/system-prompt.ts'
import { WORKSPACE } from '../../calls/offered-tool.ts'
import { isAppError, messageOf } from '../../lib/errors.ts'
import { backoffMs } from '../../lib/waiting/backoff.ts'
import type { NewEvent } from '../../storage/event-log.ts'
import { isOwnershipError } from '../sandboxes/ownership-error.ts'
import { appendEvents, lostWithServer, unknownOutcome } from '../sandboxes/session-events.ts'
import type { HeldSession } from '../sandboxes/session-manager.ts'
import { askedAgain, withTargets } from './call-targets.ts'
import type { ChatDeps } from './chat-options.ts'
import type { Conversation } from './conversation.ts'
import { endOf, keyed, notRun, stopped } from './turn-events.ts'

/** While calls run, answers that another instance appended are looked for this often. */
const LOOK_MS = 500
const RETRY = { firstMs: 500, maxMs: 10_000 }
const RETRY_BUSY = { firstMs: 50, maxMs: LOOK_MS }

export class TurnDriver {
  readonly #deps: ChatDeps
  readonly #sessionId: string
  readonly #conversation: Conversation
  readonly #onQuiet: () => void
  /** Calls that run here, each with the turn it belongs to. */
  readonly #calls = new Map<string, string>()
  #abort = new AbortController()
  #driving: Promise<void> | undefined
  #news = Promise.withResolvers<void>()
  #hasNews = false
  #closed = false
  #retry: NodeJS.Timeout | undefined
  #failures = 0
  /** Why no more calls can be started under this hold. */
  #lost: unknown

  constructor(sessionId: string, conversation: Conversation, deps: ChatDeps, onQuiet: () => void) {
    this.#sessionId = sessionId
    this.#conversation = conversation
    this.#deps = deps
    this.#onQuiet = onQuiet
  }

  /** Is at it, or means to try again. */
  get isBusy(): boolean {
    return this.#driving !== undefined || this.#retry !== undefined
  }

  /** Something was appended, or someone came back: see what the turn needs. */
  wake(): void {
    if (this.#closed) return
    this.#hasNews = true
    this.#news.resolve()
    clearTimeout(this.#retry)
    this.#retry = undefined
    this.#driving ??= this.#driveUntilQuiet().finally(() => {
      this.#driving = undefined
      if (this.#hasNews && !this.#closed) this.wake()
      else this.#onQuiet()
    })
  }

  /** Stops the model's stream and the running commands; the log has been told by the caller. */
  cancel(): void {
    this.#abort.abort(stopped())
    this.#abort = new AbortController()
    this.wake()
  }

  /** Lets go of the turn, which stays open in the log for whoever drives it next. `why` is recorded with the calls that run. */
  async close(why = stopped()): Promise<void> {
    this.#closed = true
    clearTimeout(this.#retry)
    this.#retry = undefined
    this.#abort.abort(why)
    this.#news.resolve()
    await this.#driving
  }

  async #driveUntilQuiet(): Promise<void> {
    const { sessions } = this.#deps
    this.#hasNews = false
    try {
      await this.#conversation.refresh()
      // Another instance that has the session may do what is needed: who stood in line for it would then take it for nothing.
      const options = { waitMs: 0 }
      if (!this.#isQuiet(this.#next())) await sessions.hold(this.#sessionId, (hold) => this.#drive(hold), options)
      this.#failures = 0
    } catch (error) {
      await this.#onFailure(error)
    }
  }

  /** What failed for want of the lease or the store is tried again; anything else ends the turn. */
  async #onFailure(error: unknown): Promise<void> {
    const { logger } = this.#deps
    if (isOwnershipError(error)) {
      logger.debug({ err: error, sessionId: this.#sessionId }, `A turn waits: ${messageOf(error)}`)
      if (!this.#closed) this.#wakeLater(isAppError(error, 'session_busy') ? RETRY_BUSY : RETRY)
      return
    }
    logger.warn({ err: error, sessionId: this.#sessionId }, `A turn stands still: ${messageOf(error)}`)
    try {
      const { turnId } = await this.#conversation.refresh()
      if (turnId) await this.#failTurn(turnId, error)
    } catch {
      // It stays open in the log, and is looked at again when someone comes back to it.
    }
  }

  #wakeLater(pace: typeof RETRY): void {
    this.#failures += 1
    this.#retry = setTimeout(() => this.wake(), backoffMs(this.#failures, pace))
    this.#retry.unref()
  }

  #next(): NextAction {
    const { transcript, recent } = this.#conversation
    return nextAction(transcript, stepsInTurn(recent, transcript.turnId), this.#deps.options.limits)
  }

  /** A call that was started and is not ours was interrupted, or is another instance's: taking the lease tells which. */
  #isQuiet(action: NextAction): boolean {
    if (this.#neverRun().length > 0) return false
    if (action.type === 'idle') return true
    if (action.type !== 'wait') return false
    return this.#startedElsewhere().length === 0
  }

  #startedElsewhere(): CallEntry[] {
    const { calls, turnId } = this.#conversation.transcript
    return Object.values(calls).filter((call) => {
      const open = call.turnId === turnId && call.startedAt !== undefined && !call.result
      return open && !this.#calls.has(call.callId)
    })
  }

  /** Approved in a turn that is over, before their time had come. */
  #neverRun(): CallEntry[] {
    const { calls, turnId } = this.#conversation.transcript
    return Object.values(calls).filter((call) => {
      const waits = call.decision?.approved && call.startedAt === undefined && !call.result
      return waits && call.turnId !== turnId && !this.#calls.has(call.callId)
    })
  }

  async #drive(hold: HeldSession): Promise<void> {
    this.#lost = undefined
    for (;;) {
      try {
        if (await this.#advance(hold)) return
      } catch (error) {
        // Who let go of the session while calls run here would leave it to others, who then end them.
        if (this.#calls.size === 0 || !isOwnershipError(error)) throw error
        await this.#newsOrTime()
      }
    }
  }

  /** Does what comes next; true: there is nothing more to do for now. */
  async #advance(hold: HeldSession): Promise<boolean> {
    this.#hasNews = false
    this.#news = Promise.withResolvers()
    const ours = new Set(this.#calls.keys())
    const { turnId } = await this.#conversation.refresh()
    this.#stopCallsOfOtherTurns(turnId)
    const isOver = this.#closed || this.#lost !== undefined
    if (this.#lost !== undefined && this.#calls.size === 0) throw this.#lost
    for (const { callId } of this.#neverRun()) await this.#append([notRun(callId, stopped())], hold.epoch)
    const action: NextAction = isOver ? { type: 'wait' } : this.#next()
    if (action.type === 'run' && (await this.#refuseOverQuota(action.calls, hold.epoch))) return false
    if (action.type === 'run') this.#startCalls(hold, action.calls)
    if (action.type === 'step' && turnId && this.#calls.size === 0) await this.#step(hold, turnId)
    else if (action.type === 'end' && turnId) await this.#end(turnId, action.reason, hold.epoch)
    else if (action.type === 'wait' && !isOver && (await this.#reportLost(ours, hold.epoch))) return false
    else if (this.#calls.size > 0) await this.#newsOrTime()
    else return !this.#hasNews || this.#closed
    return false
  }

  /** Calls that were approved while there was room are answered, not run, once there is none. True: they were. */
  async #refuseOverQuota(calls: CallEntry[], epoch: number): Promise<boolean> {
    const waiting = calls.filter(({ callId }) => !this.#calls.has(callId))
    if (waiting.length === 0) return false
    try {
      await this.#deps.checkQuota(this.#sessionId)
      return false
    } catch (error) {
      if (!isAppError(error) || !error.code.startsWith('quota_')) throw error
      for (const { callId } of waiting) await this.#append([notRun(callId, error)], epoch)
      return true
    }
  }

  async #newsOrTime(): Promise<void> {
    const timer = setTimeout(this.#news.resolve, LOOK_MS)
    await this.#news.promise
    clearTimeout(timer)
  }

  /** The turn may have been stopped through another instance, which can't reach what runs here. */
  #stopCallsOfOtherTurns(turnId: string | null): void {
    if ([...this.#calls.values()].every((turn) => turn === turnId) || this.#abort.signal.aborted) return
    this.#abort.abort(stopped())
    this.#abort = new AbortController()
  }

  /** We hold the session: a call that was started and that nobody here runs is lost, and nobody will tell of it. */
  async #reportLost(ours: ReadonlySet<string>, epoch: number): Promise<boolean> {
    const lost = this.#startedElsewhere().filter(({ callId }) => !ours.has(callId))
    const events = lost.map(({ callId }) => lostWithServer(callId))
    if (events.length > 0) await this.#append(events, epoch)
    return events.length > 0
  }

  async #step(hold: HeldSession, turnId: string): Promise<void> {
    const { live } = this.#deps
    const { signal } = this.#abort
    live(this.#sessionId, 'agent:thinking', { turnId })
    const stopWatching = this.#stopWithTurn(turnId)
    try {
      await this.#deps.checkQuota(this.#sessionId)
      for await (const output of await this.#startStep(hold, turnId, signal)) {
        if (signal.aborted) return
        if (output.type === 'delta') live(this.#sessionId, 'agent:delta', { turnId, text: output.text })
        else if (output.type === 'waiting') await this.#tell('model_waiting', output.message, hold.epoch)
        else {
          const look = { sessionId: this.#sessionId, hold, signal, logger: this.#deps.logger }
          await this.#append((await withTargets(output.events, look)).map(keyed), hold.epoch)
        }
      }
    } catch (error) {
      if (signal.aborted) return
      if (isOwnershipError(error)) throw error
      await this.#failTurn(turnId, error, hold.epoch)
    } finally {
      stopWatching()
    }
  }

  async #startStep(hold: HeldSession, turnId: string, signal: AbortSignal): Promise<ReturnType<typeof modelStep>> {
    const { toolbox, guard, models, policy, options } = this.#deps
    const { transcript, recent } = this.#conversation
    const { tools, missing } = await toolbox.offer(hold, this.#sessionId, signal)
    signal.throwIfAborted()
    if (missing.length > 0 && stepsInTurn(recent, turnId) === 0)
      await this.#tell('tools_missing', missing.join(' ').slice(0, 2000), hold.epoch)
    return modelStep({
      sessionId: this.#sessionId,
      turnId,
      model: transcript.model ?? (await models.resolve(undefined)),
      system: systemPromptFor(tools, options),
      history: modelHistory(recent, transcript),
      maxHistoryTokens: options.maxHistoryTokens,
      maxOutputTokens: options.maxOutputTokens,
      tools,
      trimmingTold: recent.some(({ type, data }) => type === 'session:notice' && data.code === 'history_trimmed'),
      takenIds: (callId) => callOf(transcript, callId) !== undefined,
      allowed: transcript.allowed,
      changed: await guard.changes(tools.filter(({ server }) => server !== WORKSPACE)),
      policy,
      step: (request) => models.step(request),
      signal
    })
  }

  /** A turn that another instance ended must not go on streaming here. */
  #stopWithTurn(turnId: string): () => void {
    const abort = this.#abort
    const look = async () => {
      const transcript = await this.#conversation.refresh()
      if (transcript.turnId !== turnId) abort.abort(stopped())
    }
    const timer = setInterval(() => void look().catch(() => {}), 2 * LOOK_MS)
    return () => clearInterval(timer)
  }

  #startCalls(hold: HeldSession, calls: CallEntry[]): void {
    for (const call of calls) {
      const { callId } = call
      if (this.#calls.has(callId)) continue
      // One more might be refused by the sandbox, though a human has said yes to it.
      if (this.#calls.size === MAX_COMMANDS_AT_ONCE) return
      this.#calls.set(callId, call.turnId)
      void this.#runCall(hold, call, this.#abort.signal).finally(() => {
        this.#calls.delete(callId)
        this.#hasNews = true
        this.#news.resolve()
      })
    }
  }

  async #runCall(hold: HeldSession, call: CallEntry, signal: AbortSignal): Promise<void> {
    const { toolbox, live, logger } = this.#deps
    const { callId } = call
    try {
      await toolbox.run(hold, {
        sessionId: this.#sessionId,
        call,
        signal,
        onOutput: (chunk) => live(this.#sessionId, 'tool:output', { callId, ...chunk })
      })
    } catch (error) {
      logger.debug({ err: error, callId }, 'A call failed.')
      if (isOwnershipError(error)) this.#lost = error
      else if (isAppError(error, 'target_changed'))
        await this.#append([askedAgain(this.#sessionId, call, error)], hold.epoch).catch(() => {})
      else await this.#answerUnanswered(callId, error, hold.epoch).catch(() => {})
    }
  }

  /** A call that failed before it left a trace still needs its answer, or the turn would wait for ever. */
  async #answerUnanswered(callId: string, error: unknown, epoch: number): Promise<void> {
    const call = callOf(await this.#conversation.refresh(), callId)
    if (call?.result) return
    const isUnknown = call?.startedAt !== undefined
    await this.#append([isUnknown ? unknownOutcome(callId, messageOf(error)) : notRun(callId, error)], epoch)
  }

  async #end(turnId: string, reason: TurnEndReason, epoch: number): Promise<void> {
    const message =
      reason === 'spending_limit'
        ? 'This session has used up its tokens; raise the limit to go on.'
        : 'The model took too many steps without finishing; say how to go on.'
    await this.#append([{ type: 'agent:error', data: { turnId, code: reason, message } }, endOf(turnId, reason)], epoch)
  }

  async #failTurn(turnId: string, error: unknown, epoch?: number): Promise<void> {
    const known = isAppError(error)
    if (!known) this.#deps.logger.error({ err: error, sessionId: this.#sessionId }, 'A turn failed.')
    const { code, message } = known ? error : { code: 'internal', message: 'Something went wrong inside; see the log.' }
    await this.#append([{ type: 'agent:error', data: { turnId, code, message } }, endOf(turnId, 'error')], epoch)
  }

  #tell(code: string, message: string, epoch: number): Promise<void> {
    return this.#append([{ type: 'session:notice', data: { code, message } }], epoch)
  }

  /** What a turn that is over for others still wants to say is not said. */
  async #append(events: NewEvent[], epoch?: number): Promise<void> {
    try {
      await appendEvents(this.#deps, this.#sessionId, events, epoch)
    } catch (error) {
      if (!isAppError(error, 'event_exists')) throw error
    }
  }
}
