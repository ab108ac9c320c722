/**
 * Carries one session's turn on: looks at the log, does what comes next, and stops when the turn waits for a human or is over.
 * Keeps nothing that a restart would miss; any instance that is woken comes to the same next action. One drive at a time.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { TurnEndReason } from '../../contract/events.ts'
import type { CallEntry } from '../../contract/transcript.ts'
import { modelHistory, stepsInTurn } from '../agent/model-history.ts'
import { type AgentEvent, modelStep } from '../agent/model-step.ts'
import { type NextAction, nextAction } from '../agent/next-action.ts'
import { systemPrompt } from '../agent/system-prompt.ts'
import { AppError, isAppError, messageOf } from '../lib/errors.ts'
import type { NewEvent } from '../storage/event-log.ts'
import type { ChatDeps } from './chat-options.ts'
import type { Conversation } from './conversation.ts'
import type { Hold } from './session-manager.ts'

/** While calls run, answers that another instance appended are looked for this often. */
const LOOK_MS = 500
/** Somebody else carries the turn on, or nobody can right now: nothing to tell the user. */
const NOT_OURS = new Set(['session_busy', 'lease_lost', 'stale_epoch', 'shutting_down', 'store_unavailable'])

export class TurnDriver {
  readonly #deps: ChatDeps
  readonly #sessionId: string
  readonly #conversation: Conversation
  readonly #calls = new Map<string, Promise<void>>()
  #abort = new AbortController()
  #driving: Promise<void> | undefined
  #news = Promise.withResolvers<void>()
  #hasNews = false

  constructor(sessionId: string, conversation: Conversation, deps: ChatDeps) {
    this.#sessionId = sessionId
    this.#conversation = conversation
    this.#deps = deps
  }

  get isDriving(): boolean {
    return this.#driving !== undefined
  }

  /** Something was appended, or someone came back: see what the turn needs. */
  wake(): void {
    this.#hasNews = true
    this.#news.resolve()
    this.#driving ??= this.#driveUntilQuiet().finally(() => {
      this.#driving = undefined
      if (this.#hasNews) this.wake()
    })
  }

  /** Stops the model's stream and the running commands; the log has been told by the caller. */
  cancel(): void {
    this.#abort.abort(stopped())
    this.#abort = new AbortController()
    this.wake()
  }

  async idle(): Promise<void> {
    await this.#driving
  }

  async #driveUntilQuiet(): Promise<void> {
    this.#hasNews = false
    try {
      await this.#conversation.refresh()
      if (this.#isQuiet(this.#next())) return
      await this.#deps.sessions.hold(this.#sessionId, (hold) => this.#drive(hold))
    } catch (error) {
      this.#deps.logger.warn({ err: error, sessionId: this.#sessionId }, `A turn stands still: ${messageOf(error)}`)
      if (isAppError(error) && NOT_OURS.has(error.code)) return
      const { turnId } = this.#conversation.transcript
      if (turnId) await this.#failTurn(turnId, error).catch(() => {})
    }
  }

  #next(): NextAction {
    const { transcript, recent } = this.#conversation
    return nextAction(transcript, stepsInTurn(recent, transcript.turnId), this.#deps.options.limits)
  }

  /** A call that was started and is not ours was interrupted, or is another instance's: taking the lease tells which. */
  #isQuiet(action: NextAction): boolean {
    if (action.type === 'idle') return true
    if (action.type !== 'wait') return false
    const calls = Object.values(this.#conversation.transcript.calls)
    return !calls.some(
      ({ startedAt, result, callId }) => startedAt !== undefined && !result && !this.#calls.has(callId)
    )
  }

  async #drive(hold: Hold): Promise<void> {
    for (;;) {
      this.#hasNews = false
      this.#news = Promise.withResolvers()
      await this.#conversation.refresh()
      const action = this.#next()
      const { turnId } = this.#conversation.transcript
      if (action.type === 'run') this.#startCalls(hold, action.calls)
      if (action.type === 'step' && turnId && this.#calls.size === 0) await this.#step(hold, turnId)
      else if (action.type === 'end' && turnId) await this.#end(turnId, action.reason, hold.epoch)
      else if (this.#calls.size > 0) await Promise.race([this.#news.promise, delay(LOOK_MS)])
      else if (!this.#hasNews) return
    }
  }

  async #step(hold: Hold, turnId: string): Promise<void> {
    const { live } = this.#deps
    const { signal } = this.#abort
    live(this.#sessionId, 'agent:thinking', { turnId })
    const stopWatching = this.#stopWithTurn(turnId)
    try {
      for await (const output of await this.#startStep(hold, turnId, signal)) {
        if (output.type === 'delta') live(this.#sessionId, 'agent:delta', { turnId, text: output.text })
        else if (output.type === 'waiting') await this.#tell('model_waiting', output.message, hold.epoch)
        else await this.#append(output.events.map(keyed), hold.epoch)
      }
    } catch (error) {
      if (!signal.aborted) await this.#failTurn(turnId, error, hold.epoch)
    } finally {
      stopWatching()
    }
  }

  async #startStep(hold: Hold, turnId: string, signal: AbortSignal): Promise<ReturnType<typeof modelStep>> {
    const { toolbox, guard, models, policy, options } = this.#deps
    const { transcript, recent } = this.#conversation
    const tools = await toolbox.offer(hold, signal)
    return modelStep({
      sessionId: this.#sessionId,
      turnId,
      model: transcript.model ?? (await models.resolve(undefined)),
      system: systemPrompt({ hasSandbox: tools.length > 0, network: options.network }),
      history: modelHistory(recent, transcript),
      maxHistoryTokens: options.maxHistoryTokens,
      maxOutputTokens: options.maxOutputTokens,
      tools,
      allowed: transcript.allowed,
      changed: await guard.changes(tools),
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

  #startCalls(hold: Hold, calls: CallEntry[]): void {
    for (const call of calls) {
      const { callId } = call
      if (this.#calls.has(callId)) continue
      const run = this.#runCall(hold, call, this.#abort.signal).finally(() => {
        this.#calls.delete(callId)
        this.#hasNews = true
        this.#news.resolve()
      })
      this.#calls.set(callId, run)
    }
  }

  async #runCall(hold: Hold, call: CallEntry, signal: AbortSignal): Promise<void> {
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
      await this.#answerUnanswered(callId, error, hold.epoch).catch(() => {})
    }
  }

  /** A call that failed before it left a trace still needs its answer, or the turn would wait for ever. */
  async #answerUnanswered(callId: string, error: unknown, epoch: number): Promise<void> {
    const { calls } = await this.#conversation.refresh()
    if (calls[callId]?.result) return
    const content = [{ type: 'text', text: `It was not run: ${messageOf(error)}` }]
    await this.#append([{ type: 'tool:result', data: { callId, isError: true, content } }], epoch)
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
      await this.#deps.append(this.#sessionId, events, epoch)
    } catch (error) {
      if (!isAppError(error, 'event_exists')) throw error
    }
  }
}

/** A turn ends once: of two ends, one is refused. */
export function endOf(turnId: string, reason: TurnEndReason): NewEvent {
  return { type: 'turn:end', data: { turnId, reason }, key: `end:${turnId}` }
}

function keyed(event: AgentEvent): NewEvent {
  return event.type === 'turn:end' ? endOf(event.data.turnId, event.data.reason) : event
}

function stopped(): AppError {
  return new AppError('cancelled', 'cancelled', 'The turn was stopped.')
}
