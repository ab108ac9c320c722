/**
 * Carries one session's turn on: looks at the log, does what comes next, and stops when the turn waits for a human or is over.
 * Keeps nothing that a restart would miss; any instance that is woken comes to the same next action. One drive at a time.
 */
import type { CallEntry } from '../../contract/transcript.ts'
import { modelHistory, stepsInTurn } from '../agent/model-history.ts'
import { type AgentEvent, modelStep } from '../agent/model-step.ts'
import { nextAction, type TurnLimits } from '../agent/next-action.ts'
import { systemPrompt } from '../agent/system-prompt.ts'
import { AppError, isAppError, messageOf } from '../lib/errors.ts'
import type { Logger } from '../lib/logger.ts'
import type { Models } from '../models/port.ts'
import type { ApprovalPolicy } from '../tools/approval-policy.ts'
import type { OfferedTool } from '../tools/offered-tool.ts'
import type { Conversation } from './conversation.ts'
import type { Hold, SessionManager } from './session-manager.ts'

export interface LiveEvents {
  'agent:thinking': { turnId: string }
  'agent:delta': { turnId: string; text: string }
  'tool:output': { callId: string; stream: 'stdout' | 'stderr'; text: string }
}

export interface TurnDriverDeps {
  sessions: SessionManager
  models: Models
  policy: ApprovalPolicy
  /** Appends and publishes. */
  append(sessionId: string, events: KeyedEvent[], epoch?: number): Promise<void>
  /** Publishes what is not stored. */
  live<T extends keyof LiveEvents>(sessionId: string, type: T, data: LiveEvents[T]): void
  tools(hold: Hold, signal: AbortSignal): Promise<OfferedTool[]>
  network: string
  limits: TurnLimits
  maxHistoryTokens: number
  maxOutputTokens?: number | undefined
  logger: Logger
}

/** An event that can be appended once only: the second with its key is refused. */
export type KeyedEvent = AgentEvent & { key?: string }

export class TurnDriver {
  readonly #deps: TurnDriverDeps
  readonly #sessionId: string
  readonly #conversation: Conversation
  readonly #calls = new Map<string, Promise<void>>()
  #abort = new AbortController()
  #driving: Promise<void> | undefined
  #news = Promise.withResolvers<void>()
  #hasNews = false

  constructor(sessionId: string, conversation: Conversation, deps: TurnDriverDeps) {
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
    this.#abort.abort(new AppError('cancelled', 'cancelled', 'The turn was stopped.'))
    this.#abort = new AbortController()
    this.wake()
  }

  async idle(): Promise<void> {
    await this.#driving
  }

  async #driveUntilQuiet(): Promise<void> {
    try {
      await this.#conversation.refresh()
      if (this.#next().type === 'idle' || this.#next().type === 'wait') {
        this.#hasNews = false
        return
      }
      await this.#deps.sessions.hold(this.#sessionId, (hold) => this.#drive(hold))
    } catch (error) {
      this.#hasNews = false
      this.#deps.logger.warn({ err: error, sessionId: this.#sessionId }, `A turn could not go on: ${messageOf(error)}`)
      await this.#fail(error).catch(() => {})
    }
  }

  #next() {
    const { transcript, recent } = this.#conversation
    return nextAction(transcript, stepsInTurn(recent, transcript.turnId), this.#deps.limits)
  }

  async #drive(hold: Hold): Promise<void> {
    for (;;) {
      this.#hasNews = false
      this.#news = Promise.withResolvers()
      await this.#conversation.refresh()
      const action = this.#next()
      const { turnId } = this.#conversation.transcript
      if (action.type === 'run') this.#startCalls(hold, action.calls)
      else if (action.type === 'step' && turnId && this.#calls.size === 0) await this.#step(hold, turnId)
      else if (action.type === 'end' && turnId) await this.#end(turnId, action.reason, hold.epoch)
      else if (this.#calls.size === 0 && !this.#hasNews) return
      else await this.#news.promise
    }
  }

  async #step(hold: Hold, turnId: string): Promise<void> {
    const { deps, signal } = { deps: this.#deps, signal: this.#abort.signal }
    const { transcript, recent } = this.#conversation
    deps.live(this.#sessionId, 'agent:thinking', { turnId })
    const ended = this.#endsWithTurn(turnId)
    try {
      const tools = await deps.tools(hold, signal)
      const outputs = modelStep({
        sessionId: this.#sessionId,
        turnId,
        model: transcript.model ?? (await deps.models.resolve(undefined)),
        system: systemPrompt({ hasSandbox: tools.length > 0, network: deps.network }),
        history: modelHistory(recent, transcript),
        maxHistoryTokens: deps.maxHistoryTokens,
        maxOutputTokens: deps.maxOutputTokens,
        tools,
        allowed: transcript.allowed,
        policy: deps.policy,
        step: (request) => deps.models.step(request),
        signal
      })
      for await (const output of outputs) {
        if (output.type === 'delta') deps.live(this.#sessionId, 'agent:delta', { turnId, text: output.text })
        else if (output.type === 'waiting') await this.#tell('model_waiting', output.message, hold.epoch)
        else await this.#append(output.events.map(keyed), hold.epoch)
      }
    } catch (error) {
      if (signal.aborted) return
      await this.#failTurn(turnId, error, hold.epoch)
    } finally {
      ended()
    }
  }

  /** A turn that another instance or tab ended must not go on streaming here. */
  #endsWithTurn(turnId: string): () => void {
    const abort = this.#abort
    const timer = setInterval(() => {
      void this.#conversation.refresh().then(
        ({ turnId: now }) => {
          if (now !== turnId) abort.abort(new AppError('cancelled', 'cancelled', 'The turn was stopped.'))
        },
        () => {}
      )
    }, 1000)
    return () => clearInterval(timer)
  }

  #startCalls(hold: Hold, calls: CallEntry[]): void {
    for (const call of calls) {
      if (this.#calls.has(call.callId)) continue
      const signal = this.#abort.signal
      const run = this.#runCall(hold, call, signal).finally(() => {
        this.#calls.delete(call.callId)
        this.#hasNews = true
        this.#news.resolve()
      })
      this.#calls.set(call.callId, run)
    }
    if (calls.every(({ callId }) => this.#calls.has(callId))) this.#news.resolve()
  }

  async #runCall(hold: Hold, call: CallEntry, signal: AbortSignal): Promise<void> {
    const { callId, name } = call
    const args = call.decision?.editedArgs ?? call.args
    const onOutput = (chunk: { stream: 'stdout' | 'stderr'; text: string }) =>
      this.#deps.live(this.#sessionId, 'tool:output', { callId, ...chunk })
    try {
      const workspace = await hold.workspace(signal)
      await workspace.runTool({ callId, name, args, signal, onOutput })
    } catch (error) {
      this.#deps.logger.debug({ err: error, callId }, 'A call failed.')
      await this.#answerUnanswered(callId, error, hold.epoch)
    }
  }

  /** A call that failed before it left a trace still needs its answer, or the turn would wait for ever. */
  async #answerUnanswered(callId: string, error: unknown, epoch: number): Promise<void> {
    const { calls } = await this.#conversation.refresh()
    if (calls[callId]?.result) return
    const content = [{ type: 'text', text: `It was not run: ${messageOf(error)}` }]
    await this.#append(
      [{ type: 'tool:result', data: { callId, isError: true, content }, key: `result:${callId}` }],
      epoch
    )
  }

  async #end(turnId: string, reason: 'step_limit' | 'spending_limit' | string, epoch: number): Promise<void> {
    const message =
      reason === 'spending_limit' ? 'This session has used up its tokens.' : 'The model took too many steps.'
    await this.#append(
      [
        { type: 'agent:error', data: { turnId, code: reason, message } },
        { type: 'turn:end', data: { turnId, reason: reason as 'step_limit' }, key: `end:${turnId}` }
      ],
      epoch
    )
  }

  async #fail(error: unknown): Promise<void> {
    const { turnId } = await this.#conversation.refresh()
    if (turnId && !isAppError(error, 'lease_lost')) await this.#failTurn(turnId, error)
  }

  async #failTurn(turnId: string, error: unknown, epoch?: number): Promise<void> {
    const known = isAppError(error)
    if (!known) this.#deps.logger.error({ err: error, sessionId: this.#sessionId }, 'A turn failed.')
    const { code, message } = known ? error : { code: 'internal', message: 'Something went wrong inside; see the log.' }
    await this.#append(
      [
        { type: 'agent:error', data: { turnId, code, message } },
        { type: 'turn:end', data: { turnId, reason: 'error' }, key: `end:${turnId}` }
      ],
      epoch
    )
  }

  #tell(code: string, message: string, epoch: number): Promise<void> {
    return this.#append([{ type: 'session:notice', data: { code, message } }], epoch)
  }

  /** What a turn that is over for others still wants to say is not said. */
  async #append(events: KeyedEvent[], epoch?: number): Promise<void> {
    try {
      await this.#deps.append(this.#sessionId, events, epoch)
    } catch (error) {
      if (!isAppError(error, 'event_exists')) throw error
    }
  }
}

function keyed(event: AgentEvent): KeyedEvent {
  return event.type === 'turn:end' ? { ...event, key: `end:${event.data.turnId}` } : event
}
