/**
 * Drives one session's turn: reads the log, does what comes next, and stops when the turn waits for a person or is over. It has no
 * state that a restart would lose: any instance comes to the same next action. Only one drive runs at a time.
 */
import { isProgram } from '../../../contract/programs.ts'
import { stepsInTurn } from '../../agent/model-history.ts'
import { type NextAction, nextAction, strayCalls } from '../../agent/next-action.ts'
import { isAppError, messageOf } from '../../lib/errors.ts'
import { backoffMs } from '../../lib/waiting/backoff.ts'
import type { NewEvent } from '../../storage/event-log.ts'
import type { Conversation } from '../feed/conversation.ts'
import { isOwnershipError } from '../sandboxes/ownership-error.ts'
import { changesUnsaved, mayPassLater } from '../sandboxes/restoring/changes-unsaved.ts'
import { appendEvents, lostWithServer } from '../sandboxes/session-events.ts'
import type { HeldSession } from '../sandboxes/session-manager.ts'
import { withTargets } from './call-targets.ts'
import type { ChatDeps } from './chat-options.ts'
import { openReview, settleReview } from './forked-calls.ts'
import { LiveAnswer } from './live-turn.ts'
import { forgetProgram } from './programs/run-program.ts'
import { RunningCalls } from './running-calls.ts'
import { saveAttachments } from './save-attachments.ts'
import { startStep } from './start-step.ts'
import { cutOffBy, failedTurn, keyed, limitedTurn, noticeOf, notRun, programStopped, stopped } from './turn-events.ts'

/** While calls run, the log is checked this often for decisions that another instance appended. */
const LOOK_MS = 500
const RETRY = { firstMs: 500, maxMs: 10_000 }
const RETRY_BUSY = { firstMs: 50, maxMs: LOOK_MS }
/** Shorter, because a person is waiting for the changes that they have accepted. */
const RETRY_SAVE = { firstMs: 500, maxMs: 3000 }

const PACES = new Map([
  ['session_busy', RETRY_BUSY],
  ['changes_unsaved', RETRY_SAVE]
])

export class TurnDriver {
  readonly #deps: ChatDeps
  readonly #sessionId: string
  readonly #conversation: Conversation
  readonly #onQuiet: () => void
  readonly #calls: RunningCalls
  #abort = new AbortController()
  #driving: Promise<void> | undefined
  #news = Promise.withResolvers<void>()
  #hasNews = false
  #closed = false
  #retry: NodeJS.Timeout | undefined
  #failures = 0
  #answer: LiveAnswer | undefined

  constructor(sessionId: string, conversation: Conversation, deps: ChatDeps, onQuiet: () => void) {
    this.#sessionId = sessionId
    this.#conversation = conversation
    this.#deps = deps
    this.#onQuiet = onQuiet
    this.#calls = new RunningCalls(deps, sessionId, conversation, {
      append: (events, epoch) => this.#append(events, epoch),
      ended: () => {
        this.#hasNews = true
        this.#news.resolve()
      },
      wake: () => this.wake()
    })
  }

  /** Whether it is driving, or will retry. */
  get isBusy(): boolean {
    return this.#driving !== undefined || this.#retry !== undefined
  }

  /** The answer that is being streamed, if any. */
  get answer(): LiveAnswer | undefined {
    return this.#answer
  }

  /** Publishes what is being streamed here from its beginning, for clients that have just connected. */
  retell(): void {
    const live = this.#deps.live
    const { turnId = '', text = '', reasoning } = this.#answer ?? {}
    if (reasoning) live(this.#sessionId, 'agent:reasoning', { turnId, ...reasoning })
    if (text !== '') live(this.#sessionId, 'agent:text', { turnId, text })
    this.#calls.talks.retell()
  }

  /** Call this when something was appended or someone came back. */
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

  /** Stops the model's stream and the running commands. The caller has already recorded that in the log. */
  cancel(): void {
    this.#stopCalls()
    this.wake()
  }

  #stopCalls(): void {
    this.#abort.abort(stopped())
    this.#abort = new AbortController()
  }

  /**
   * Releases the turn, which stays open in the log for the next driver. Running calls may end until `patience` fires; then `why` is
   * recorded for them.
   */
  async close(why = stopped(), patience = AbortSignal.abort()): Promise<void> {
    this.#closed = true
    clearTimeout(this.#retry)
    this.#retry = undefined
    const cut = () => this.#abort.abort(why)
    if (this.#calls.size === 0 || patience.aborted) cut()
    else patience.addEventListener('abort', cut, { once: true })
    this.#news.resolve()
    await this.#driving
    cut()
  }

  async #driveUntilQuiet(): Promise<void> {
    const { sessions } = this.#deps
    this.#hasNews = false
    try {
      await this.#conversation.refresh()
      // Don't wait for the lease: another instance that holds it may do the work, and then nothing is left to do.
      if (!this.#isQuiet(this.#next())) await sessions.hold(this.#sessionId, (hold) => this.#drive(hold), { waitMs: 0 })
      this.#failures = 0
    } catch (error) {
      await this.#onFailure(error)
    }
  }

  /** Retries if the lease or the store was not available; any other failure ends the turn. */
  async #onFailure(error: unknown): Promise<void> {
    const { logger } = this.#deps
    if (isOwnershipError(error)) {
      logger.debug({ err: error, sessionId: this.#sessionId }, `A turn waits: ${messageOf(error)}`)
      if (this.#closed) return
      this.#failures += 1
      const pace = PACES.get(isAppError(error) ? error.code : '') ?? RETRY
      this.#retry = setTimeout(() => this.wake(), backoffMs(this.#failures, pace)).unref()
      return
    }
    logger.warn({ err: error, sessionId: this.#sessionId }, `A turn stands still: ${messageOf(error)}`)
    try {
      const { turnId } = await this.#conversation.refresh()
      if (turnId) await this.#failTurn(turnId, error)
    } catch {
      // The turn stays open in the log and continues when someone comes back to it.
    }
  }

  #next(): NextAction {
    const { transcript, recent } = this.#conversation
    return nextAction(transcript, stepsInTurn(recent, transcript.turnId), this.#deps.options.limits)
  }

  /** A started call that is not ours was interrupted, or runs on another instance. Taking the lease tells which. */
  #isQuiet(action: NextAction): boolean {
    const { startedElsewhere, neverRun, leftPrograms } = this.#stray()
    if (neverRun.length + leftPrograms.length > 0 || this.#calls.hasDiscarded(this.#conversation.transcript))
      return false
    return action.type === 'idle' || (action.type === 'wait' && startedElsewhere.length === 0)
  }

  #stray(): ReturnType<typeof strayCalls> {
    return strayCalls(this.#conversation.transcript, this.#calls)
  }

  async #drive(hold: HeldSession): Promise<void> {
    this.#calls.lost = undefined
    for (;;) {
      try {
        if (await this.#advance(hold)) return
      } catch (error) {
        // Don't release the session while calls run here: another instance would take it over and end them.
        if (this.#calls.size === 0 || !isOwnershipError(error)) throw error
        await this.#newsOrTime()
      }
    }
  }

  /** Does what comes next. Returns true if there is nothing more to do for now. */
  async #advance(hold: HeldSession): Promise<boolean> {
    this.#hasNews = false
    this.#news = Promise.withResolvers()
    const ours = new Set(this.#calls.ids())
    // Taken before the log is read: whoever stops the turn after that aborts this signal, not the one of the next turn.
    let abort = this.#abort
    const { turnId } = await this.#conversation.refresh()
    await this.#calls.talks.settle(this.#conversation.transcript)
    // The turn may have been stopped through another instance, which can't stop the calls that run here.
    if (this.#calls.areOfOtherTurn(turnId) && !abort.signal.aborted) {
      this.#stopCalls()
      abort = this.#abort
    }
    const isOver = this.#closed || this.#calls.lost !== undefined
    if (this.#calls.lost !== undefined && this.#calls.size === 0) throw this.#calls.lost
    const { neverRun, leftPrograms } = this.#stray()
    for (const { callId } of neverRun) await this.#append([notRun(callId, stopped())], hold.epoch)
    for (const { callId, program } of leftPrograms)
      await this.#append([program ? lostWithServer(callId) : programStopped(callId)], hold.epoch)
    if (leftPrograms.length > 0) await forgetProgram(this.#deps, this.#sessionId)
    await this.#calls.endDiscarded(hold, this.#conversation.transcript)
    const action: NextAction = isOver ? { type: 'wait' } : this.#next()
    if (action.type === 'run' && (await this.#calls.refuseOverQuota(action.calls, hold.epoch))) return false
    if (action.type === 'run') this.#calls.start(hold, action.calls, abort.signal)
    if (action.type === 'step' && turnId && this.#calls.size === 0) await this.#step(hold, turnId, abort)
    else if (isReview(action) && this.#calls.size === 0) await this.#review(action, hold)
    else if (action.type === 'end' && turnId) await this.#append(limitedTurn(turnId, action.reason), hold.epoch)
    else if (action.type === 'wait' && !isOver && (await this.#reportLost(ours, hold.epoch))) return false
    else if (this.#calls.size > 0) await this.#newsOrTime()
    else return !this.#hasNews || this.#closed
    return false
  }

  async #review({ type }: NextAction, hold: HeldSession): Promise<void> {
    const { transcript } = this.#conversation
    const settle = () => settleReview(this.#deps, this.#sessionId, hold, transcript)
    const open = () => openReview(hold, transcript).catch(retryLater)
    await this.#append(await (type === 'open-review' ? open() : settle()), hold.epoch)
  }

  async #newsOrTime(): Promise<void> {
    const timer = setTimeout(this.#news.resolve, LOOK_MS)
    await this.#news.promise
    clearTimeout(timer)
  }

  /** We hold the session, so a started call that does not run here is lost, and nobody else will report it. */
  async #reportLost(ours: ReadonlySet<string>, epoch: number): Promise<boolean> {
    const events = this.#stray().startedElsewhere.flatMap(({ callId }) =>
      ours.has(callId) ? [] : [lostWithServer(callId)]
    )
    if (events.length > 0) await this.#append(events, epoch)
    return events.length > 0
  }

  async #step(hold: HeldSession, turnId: string, abort: AbortController): Promise<void> {
    const { live } = this.#deps
    const { signal } = abort
    live(this.#sessionId, 'agent:thinking', { turnId })
    const stopWatching = this.#stopWithTurn(turnId, abort)
    const step = stepsInTurn(this.#conversation.recent, turnId)
    const answer = new LiveAnswer(turnId, step, {
      text: (text) => live(this.#sessionId, 'agent:delta', { turnId, text }),
      reasoning: (piece) => live(this.#sessionId, 'agent:reasoning', { turnId, ...piece }),
      costOf: (usage) => this.#deps.models.costOf(this.#conversation.transcript.model ?? '', usage)
    })
    this.#answer = answer
    try {
      await this.#deps.checkQuota(this.#sessionId)
      await this.#forgetPrograms(turnId)
      if (await this.#saveAttachments(hold, signal)) return
      for await (const output of await this.#startStep(hold, turnId, signal)) {
        signal.throwIfAborted()
        if (output.type === 'request') answer.requested(output.inputTokens)
        else if (output.type === 'delta') answer.push(output.text)
        else if (output.type === 'reasoning') answer.think(output.text)
        else if (output.type === 'waiting') await this.#append([noticeOf('model_waiting', output.message)], hold.epoch)
        else {
          const look = { sessionId: this.#sessionId, hold, signal, logger: this.#deps.logger }
          const events = (await withTargets(output.events, look)).map((event) => keyed(event, answer))
          // If another instance has just stopped the turn, the answer is stored as it was stopped.
          if (!(await this.#append(events, hold.epoch))) await this.#append(answer.partial('stopped'), hold.epoch)
          answer.stored()
        }
      }
    } catch (error) {
      if (signal.aborted) await this.#append(answer.partial(cutOffBy(signal)), hold.epoch)
      else if (isOwnershipError(error)) throw error
      else await this.#failTurn(turnId, error, hold.epoch, answer.partial('failed'))
    } finally {
      this.#answer = undefined
      stopWatching()
    }
  }

  /** A server that ended right after the result of a program has left its log. */
  async #forgetPrograms(turnId: string): Promise<void> {
    const calls = Object.values(this.#conversation.transcript.calls)
    if (calls.some((call) => call.turnId === turnId && isProgram(call)))
      await forgetProgram(this.#deps, this.#sessionId)
  }

  /** Returns true if there was something to save. The step begins when the model's history has it. */
  async #saveAttachments(hold: HeldSession, signal: AbortSignal): Promise<boolean> {
    const { contents } = this.#deps
    const { transcript } = this.#conversation
    const events = await saveAttachments({ hold, sessionId: this.#sessionId, contents, transcript, signal })
    await this.#append(events, hold.epoch)
    return events.length > 0
  }

  #startStep(hold: HeldSession, turnId: string, signal: AbortSignal): ReturnType<typeof startStep> {
    const tell = async (code: string, message: string, servers?: string[]) =>
      void (await this.#append([noticeOf(code, message, servers)], hold.epoch))
    const append = (events: NewEvent[]) => this.#append(events, hold.epoch)
    const { transcript, recent } = this.#conversation
    return startStep(this.#deps, { hold, sessionId: this.#sessionId, turnId, transcript, recent, tell, append, signal })
  }

  /** Stops streaming when another instance has ended the turn. */
  #stopWithTurn(turnId: string, abort: AbortController): () => void {
    const look = async () => {
      const isOver = (await this.#conversation.refresh()).turnId !== turnId
      // The next turn needs a signal that is not aborted yet.
      if (isOver && abort === this.#abort) this.#stopCalls()
    }
    const timer = setInterval(() => void look().catch(() => {}), 2 * LOOK_MS)
    return () => clearInterval(timer)
  }

  async #failTurn(turnId: string, error: unknown, epoch?: number, partial: NewEvent[] = []): Promise<void> {
    if (!isAppError(error)) this.#deps.logger.error({ err: error, sessionId: this.#sessionId }, 'A turn failed.')
    await this.#append([...partial, ...failedTurn(turnId, error)], epoch)
  }

  /** Returns false, and stores nothing, if another instance has already ended the turn. */
  async #append(events: NewEvent[], epoch?: number): Promise<boolean> {
    try {
      if (events.length > 0) await appendEvents(this.#deps, this.#sessionId, events, epoch)
      return true
    } catch (error) {
      if (!isAppError(error, 'event_exists')) throw error
      return false
    }
  }
}

/** The changes are stored, and nobody would hear of them otherwise. */
function retryLater(error: unknown): never {
  throw !isOwnershipError(error) && mayPassLater(error) ? changesUnsaved(error) : error
}

function isReview({ type }: NextAction): boolean {
  return type === 'open-review' || type === 'settle-review'
}
