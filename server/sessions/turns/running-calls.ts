/** The calls of one session that run on this instance: starts them, and records what became of those that failed. */
import { isProgram } from '../../../contract/programs.ts'
import { type CallEntry, callOf, type Transcript } from '../../../contract/transcript.ts'
import { type AppError, isAppError, messageOf } from '../../lib/errors.ts'
import type { NewEvent } from '../../storage/event-log.ts'
import type { Conversation } from '../feed/conversation.ts'
import { isOwnershipError } from '../sandboxes/ownership-error.ts'
import { appendEvents, unknownOutcome } from '../sandboxes/session-events.ts'
import type { HeldSession } from '../sandboxes/session-manager.ts'
import { askedElsewhere } from './alternative-server.ts'
import { CallTalks } from './call-talks.ts'
import { askedAgain, type ResolveOptions } from './call-targets.ts'
import type { ChatDeps } from './chat-options.ts'
import { askedInstead, isForkRefused, keepCall, previewCall } from './forked-calls.ts'
import { type ProgramInput, runProgram } from './programs/run-program.ts'
import { notRun } from './turn-events.ts'

/** Calls to MCP servers run at the same time, up to this many. Those to the sandbox run one after another. */
const MAX_CALLS_AT_ONCE = 8

export interface CallHooks {
  /** Returns false if one of the events is stored already. */
  append(events: NewEvent[], epoch: number): Promise<boolean>
  ended(): void
  wake(): void
}

export class RunningCalls {
  readonly talks: CallTalks
  /** Why no more calls can be started while the session is held. */
  lost: unknown
  readonly #deps: ChatDeps
  readonly #sessionId: string
  readonly #conversation: Conversation
  readonly #hooks: CallHooks
  /** Each with its turn. */
  readonly #calls = new Map<string, string>()
  /** Calls that ran in a fork here. */
  readonly #previews = new Set<string>()
  /** Calls that programs make here. */
  readonly #inner = new Set<string>()

  constructor(deps: ChatDeps, sessionId: string, conversation: Conversation, hooks: CallHooks) {
    this.#deps = deps
    this.#sessionId = sessionId
    this.#conversation = conversation
    this.#hooks = hooks
    this.talks = new CallTalks(deps, sessionId, hooks.wake)
  }

  get size(): number {
    return this.#calls.size
  }

  ids(): Iterable<string> {
    return [...this.#calls.keys(), ...this.#inner]
  }

  has(callId: string): boolean {
    return this.#calls.has(callId) || this.#inner.has(callId)
  }

  areOfOtherTurn(turnId: string | null): boolean {
    return [...this.#calls.values()].some((turn) => turn !== turnId)
  }

  /** Whether the person has discarded what a call did in a fork. */
  hasDiscarded({ calls }: Transcript): boolean {
    return [...this.#previews].some((callId) => calls[callId]?.decision?.approved === false)
  }

  /** Ends a fork whose changes the person has discarded. Another instance, or an earlier driver, may have opened it. */
  async endDiscarded(hold: HeldSession, { calls }: Transcript): Promise<void> {
    for (const callId of this.#previews) if (calls[callId]?.decision) this.#previews.delete(callId)
    const isDiscarded = (callId: string) => calls[callId]?.decision?.approved === false
    if (hold.forks.previewed.some(isDiscarded)) await hold.forks.discard()
  }

  start(hold: HeldSession, calls: CallEntry[], signal: AbortSignal): void {
    for (const call of calls) {
      const { callId } = call
      if (this.#calls.has(callId)) continue
      if (this.#calls.size === MAX_CALLS_AT_ONCE) return
      this.#calls.set(callId, call.turnId)
      void this.#run(hold, call, signal).finally(() => {
        this.#calls.delete(callId)
        this.talks.end(callId)
        this.#hooks.ended()
      })
    }
  }

  /**
   * Calls that were approved before the quota was reached are not run; they get an error as their result. Returns true if there
   * were any.
   */
  async refuseOverQuota(calls: CallEntry[], epoch: number): Promise<boolean> {
    const waiting = calls.filter(
      ({ callId, decision, preview, startedAt }) =>
        !this.#calls.has(callId) && decision && !preview && startedAt === undefined
    )
    if (waiting.length === 0) return false
    try {
      await this.#deps.checkQuota(this.#sessionId)
      return false
    } catch (error) {
      if (!isAppError(error) || !error.code.startsWith('quota_')) throw error
      for (const { callId } of waiting) await this.#hooks.append([notRun(callId, error)], epoch)
      return true
    }
  }

  async #run(hold: HeldSession, call: CallEntry, signal: AbortSignal): Promise<void> {
    const { toolbox, logger } = this.#deps
    const { callId } = call
    const talking = this.talks.begin(callId, (events) => appendEvents(this.#deps, this.#sessionId, events, hold.epoch))
    const input = { sessionId: this.#sessionId, call, signal, ...talking }
    try {
      if (!call.decision) {
        this.#previews.add(callId)
        await this.#hooks.append(await previewCall(this.#deps, hold, input), hold.epoch)
      } else if (isProgram(call)) await runProgram(this.#place(hold), input)
      else if (call.preview)
        await this.#hooks.append(await keepCall(this.#deps, this.#sessionId, hold, call), hold.epoch)
      else await toolbox.run(hold, input)
    } catch (error) {
      logger.debug({ err: error, callId }, 'A call failed.')
      if (isOwnershipError(error)) this.lost = error
      else if (isAppError(error, 'target_changed'))
        await this.#hooks.append([askedAgain(this.#sessionId, call, error)], hold.epoch).catch(() => {})
      else if (isAppError(error, 'alternative_found')) await this.#askElsewhere(hold, call, error).catch(() => {})
      else if (isForkRefused(call, error))
        await this.#askInstead({ sessionId: this.#sessionId, hold, signal, logger }, call, error).catch(() => {})
      else await this.#answerUnanswered(callId, error, hold.epoch).catch(() => {})
    }
  }

  #place(hold: HeldSession): ProgramInput {
    const [deps, sessionId, conversation] = [this.#deps, this.#sessionId, this.#conversation]
    return { deps, sessionId, hold, conversation, running: this.#inner }
  }

  async #askElsewhere(hold: HeldSession, call: CallEntry, error: AppError): Promise<void> {
    const { allowed } = await this.#conversation.refresh()
    const events = askedElsewhere(this.#sessionId, call, error, { allowed, policy: this.#deps.policy })
    await this.#hooks.append(events, hold.epoch)
  }

  async #askInstead(look: ResolveOptions, call: CallEntry, error: unknown): Promise<void> {
    await this.#hooks.append([await askedInstead(look, call, error)], look.hold.epoch)
  }

  /** A call that failed before it recorded anything still needs a result, or the turn would wait for ever. */
  async #answerUnanswered(callId: string, error: unknown, epoch: number): Promise<void> {
    const call = callOf(await this.#conversation.refresh(), callId)
    if (call?.result) return
    const isUnknown = call?.startedAt !== undefined
    await this.#hooks.append([isUnknown ? unknownOutcome(callId, messageOf(error)) : notRun(callId, error)], epoch)
  }
}
