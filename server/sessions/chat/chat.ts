/**
 * What a person does in a session: send, decide, stop, start afresh. Each action is one log entry, written once by the instance
 * that hears of it first; the turn driver continues from there. The caller must check access to the session.
 */

import type { CommandData } from '../../../contract/commands.ts'
import { type PathTarget, pathOf } from '../../../contract/path-target.ts'
import { settingsChange } from '../../../contract/session-settings.ts'
import {
  type CallEntry,
  coveredCalls,
  lastAnswer,
  pendingCalls,
  type Transcript
} from '../../../contract/transcript.ts'
import { reopening } from '../../agent/reopening.ts'
import { AppError, isAppError } from '../../lib/errors.ts'
import type { NewEvent } from '../../storage/event-log.ts'
import { lookUpAttachments } from '../attachments/stored-file.ts'
import { Conversation } from '../feed/conversation.ts'
import { appendEvents } from '../sandboxes/session-events.ts'
import { resolveIn } from '../turns/call-targets.ts'
import type { ChatDeps } from '../turns/chat-options.ts'
import { TurnDriver } from '../turns/turn-driver.ts'
import { endOf, noticeOf, serverStopped } from '../turns/turn-events.ts'
import { alreadyAnswered, answerTo } from './answers.ts'
import {
  cancellations,
  cancelledNotice,
  decisionOn,
  resolution,
  type SwitchChoice,
  switchedModel,
  waitingCall
} from './decisions.ts'

const MIN_HELD_CHARS = 2 * 1024 * 1024
const CHARS_PER_TOKEN = 8

interface OpenChat {
  conversation: Conversation
  driver: TurnDriver
  /** Number of tabs and requests that use it. Without any, and without a turn, it is dropped from memory. */
  users: number
}

export class Chat {
  readonly #deps: ChatDeps
  readonly #open = new Map<string, OpenChat>()

  constructor(deps: ChatDeps) {
    this.#deps = deps
  }

  /** Keeps the session's conversation in memory, and continues a turn that a crash interrupted. Call the result when done. */
  attach(sessionId: string): () => void {
    const chat = this.#chat(sessionId)
    chat.users += 1
    const detach = this.#deps.sessions.attach(sessionId)
    chat.driver.wake()
    return () => {
      chat.users -= 1
      detach()
      this.#forget(sessionId, chat)
    }
  }

  /** Call this from time to time: the instance that ran the turn may be gone without telling the others. */
  nudge(sessionId: string): void {
    this.#open.get(sessionId)?.driver.wake()
  }

  /** Publishes what is being streamed here, if anything, from its beginning. */
  retell(sessionId: string): void {
    this.#open.get(sessionId)?.driver.retell()
  }

  /** Sets the first model of a new session; does nothing later. Returns the session's model. */
  async begin(sessionId: string, model: string): Promise<string> {
    const transcript = await this.transcript(sessionId)
    if (transcript.model !== null) return transcript.model
    const first = await this.#once(sessionId, [{ type: 'model:selected', data: { model }, key: 'model:first' }])
    // From now on the janitor knows the session, so that it expires even without a message.
    if (first) await this.#deps.sessions.hold(sessionId, async () => {})
    return (await this.transcript(sessionId)).model ?? model
  }

  get openIds(): string[] {
    return [...this.#open.keys()]
  }

  /** Number of conversations in memory. */
  get openCount(): number {
    return this.#open.size
  }

  async transcript(sessionId: string): Promise<Transcript> {
    const chat = this.#chat(sessionId)
    try {
      return await chat.conversation.refresh()
    } finally {
      // A query about a session that nobody has open leaves nothing in memory.
      this.#forget(sessionId, chat)
    }
  }

  /** The transcript with all calls complete; `transcript` may shorten them in a long conversation. Not kept in memory. */
  async fullTranscript(sessionId: string): Promise<Transcript> {
    const chat = this.#chat(sessionId)
    try {
      const transcript = await chat.conversation.refresh()
      if (!chat.conversation.isShortened) return transcript
      return await new Conversation(this.#deps.events, sessionId).refresh()
    } finally {
      this.#forget(sessionId, chat)
    }
  }

  /** A repeated message with the same id was only sent again because its response was lost: the first one counts. */
  async send(sessionId: string, { text, id, ...message }: CommandData<'message'>): Promise<{ turnId: string }> {
    const transcript = await this.#begun(sessionId)
    const known = turnOfMessage(transcript, id)
    if (known) return { turnId: known }
    if (transcript.turnId !== null) throw turnInProgress()
    await this.#deps.checkQuota(sessionId)
    const number = transcript.turns + 1
    const attachments = await lookUpAttachments(this.#deps.contents, sessionId, message.attachments ?? [])
    const files = attachments.length > 0 && { attachments }
    const data = { turnId: `t${number}`, text, ...(id !== undefined && { id }), ...files }
    const sent = await this.#once(sessionId, [{ type: 'user:message', data, key: `turn:${number}` }])
    const turnId = sent ? data.turnId : turnOfMessage(await this.transcript(sessionId), id)
    if (!turnId) throw turnInProgress()
    this.#chat(sessionId).driver.wake()
    return { turnId }
  }

  /** Tries the last answer again. Of two people who do so at once, or send a message meanwhile, the first one counts. */
  async retry(sessionId: string, { turnId: of }: CommandData<'turn:retry'>): Promise<{ turnId: string }> {
    const transcript = await this.#begun(sessionId)
    if (transcript.turnId !== null) throw turnInProgress()
    const last = lastAnswer(transcript)
    if (!last) throw nothingToRetry()
    if (of !== undefined && of !== last.turnId)
      throw new AppError('conflict', 'not_last_answer', 'Only the last answer can be retried; there is a newer one.')
    await this.#deps.checkQuota(sessionId)
    const number = transcript.turns + 1
    const { conversation, driver } = this.#chat(sessionId)
    await conversation.refresh()
    const data = { turnId: `t${number}`, ...reopening(conversation.recent, transcript, last) }
    // The key of the next message: both begin a turn.
    if (!(await this.#once(sessionId, [{ type: 'turn:reopened', data, key: `turn:${number}` }]))) throw turnInProgress()
    // A fresh start may have come first.
    if ((await this.transcript(sessionId)).turnId !== data.turnId) throw nothingToRetry()
    driver.wake()
    return { turnId: data.turnId }
  }

  async decide(sessionId: string, answer: CommandData<'tool:approval'>): Promise<void> {
    const call = await this.#record(sessionId, answer)
    if (answer.approved && call.definitionChange)
      await this.#deps.guard.accept(call.server, call.name, call.definitionChange.after)
    this.#chat(sessionId).driver.wake()
  }

  /** Appends the decision, together with those on the calls that "Always allow" covers. */
  async #record(sessionId: string, answer: CommandData<'tool:approval'>): Promise<CallEntry> {
    for (;;) {
      const transcript = await this.#begun(sessionId)
      const call = waitingCall(transcript, answer.callId)
      const events = [decisionOn(call, answer)]
      if (answer.approved && answer.remember) events.push(...this.#remembered(transcript, call))
      if (await this.#once(sessionId, events)) return call
      // One of these calls was decided elsewhere at this moment. If it was not this one, try again.
    }
  }

  #remembered(transcript: Transcript, call: CallEntry): NewEvent[] {
    const { server, name, definition } = call
    // Only for a tool that still needs approval: if a rule now denies it, its calls keep their cards.
    const covered = this.#deps.policy(server, name) === 'deny' ? [] : coveredCalls(transcript, call)
    return [
      { type: 'tool:allowed', data: { server, name, definition } },
      ...covered.map((each) => resolution(each, { approved: true, by: 'session' }))
    ]
  }

  /** Answers a question of a running call's MCP server. The call may run on another instance, which reads the answer in the log. */
  async answer(sessionId: string, answer: CommandData<'tool:answer'>): Promise<void> {
    if (!(await this.#once(sessionId, [answerTo(await this.#begun(sessionId), answer)]))) throw alreadyAnswered()
    this.#chat(sessionId).driver.wake()
  }

  /** Where a waiting call would lead with these arguments. The page shows it before an edit is approved. */
  async target(sessionId: string, { callId, args }: CommandData<'tool:target'>): Promise<{ target?: PathTarget }> {
    const call = waitingCall(await this.#begun(sessionId), callId)
    const path = pathOf(call, args)
    if (path === undefined) return {}
    const [target] = await this.#deps.sessions.hold(sessionId, (hold) => resolveIn(hold, [path]))
    return target ? { target } : {}
  }

  /** Ends the turn: waiting calls are not run, running ones are stopped. */
  async cancel(sessionId: string): Promise<void> {
    const { turnId } = await this.#begun(sessionId)
    if (turnId === null) throw new AppError('conflict', 'no_turn', 'There is nothing to stop.')
    await this.#stopAnd(sessionId, () => [], { only: turnId })
  }

  async reset(sessionId: string): Promise<void> {
    const why = 'A fresh history was started.'
    const then = (cancelled: number) => [...cancelledNotice(cancelled, why), { type: 'history:reset', data: {} }]
    await this.#stopAnd(sessionId, then, { why })
  }

  /** Continues with another model, which starts with a fresh history or gets the conversation. Files and the readable past stay. */
  async selectModel(sessionId: string, model: string, how: SwitchChoice = {}): Promise<void> {
    if ((await this.#begun(sessionId)).model === model) return
    await this.#deps.models.prove(model)
    const why = `The model was switched to ${model}.`
    await this.#stopAnd(sessionId, (cancelled) => switchedModel({ model, ...how }, cancelled, why), { why })
  }

  async configure(sessionId: string, settings: CommandData<'session:configure'>): Promise<void> {
    if (settingsChange((await this.#begun(sessionId)).settings, settings) === '') return
    await appendEvents(this.#deps, sessionId, [{ type: 'session:settings', data: settings }])
  }

  async revoke(sessionId: string, { server, name }: CommandData<'tool:revoke'>): Promise<void> {
    const { allowed } = await this.#begun(sessionId)
    if (!Object.hasOwn(allowed, `${server}/${name}`)) return
    await appendEvents(this.#deps, sessionId, [{ type: 'tool:allow_revoked', data: { server, name } }])
  }

  /** Raises the session's limit by its original amount, and goes on with the turn that the limit ended. */
  async raiseLimit(sessionId: string): Promise<void> {
    const { usage, turnId, lastTurnEnd } = await this.#begun(sessionId)
    const { maxSessionTokens } = this.#deps.options.limits
    if (maxSessionTokens === undefined) throw new AppError('conflict', 'no_limit', 'This server has no such limit.')
    const tokens = usage.inputTokens + usage.outputTokens + maxSessionTokens
    await appendEvents(this.#deps, sessionId, [{ type: 'limit:raised', data: { tokens } }])
    if (turnId === null && lastTurnEnd?.reason === 'spending_limit') await this.retry(sessionId, {})
  }

  /** Shows a notice to the people in the session. */
  async notice(sessionId: string, code: string, message: string): Promise<void> {
    await appendEvents(this.#deps, sessionId, [noticeOf(code, message)])
  }

  /** Stops work on all turns. Each stays open in the log and continues when someone comes back to it. */
  async stop(): Promise<void> {
    await Promise.all([...this.#open.values()].map(({ driver }) => driver.close(serverStopped())))
  }

  /** Ends the turn on every instance and drops the session from memory before it is removed. */
  async end(sessionId: string): Promise<void> {
    const { turnId } = await this.transcript(sessionId)
    const stopped = turnId === null ? undefined : this.#stopAnd(sessionId, () => [], { only: turnId })
    await stopped?.catch((error) => {
      // A full store can't record the end of the turn. Deleting the session makes room.
      if (!isAppError(error, 'store_unavailable')) throw error
    })
    await this.forget(sessionId)
  }

  /** The session was removed: drop everything known about it. */
  async forget(sessionId: string): Promise<void> {
    const chat = this.#open.get(sessionId)
    this.#open.delete(sessionId)
    await chat?.driver.close()
  }

  /**
   * Ends the turn, if there is one, and appends what follows in one step. `then` is told how many waiting approvals that cancels.
   * With `only`, other turns are left alone. `why` is recorded with each cancelled approval.
   */
  async #stopAnd(
    sessionId: string,
    then: (cancelled: number) => NewEvent[],
    { only, why }: { only?: string; why?: string } = {}
  ): Promise<void> {
    const answer = this.#open.get(sessionId)?.driver.answer
    answer?.hold()
    try {
      for (;;) {
        const transcript = await this.#begun(sessionId)
        const { turnId } = transcript
        if (only !== undefined && turnId !== only) return
        const waiting = pendingCalls(transcript)
        const partial = answer?.turnId === turnId ? answer.partial('stopped') : []
        const ending = turnId === null ? [] : [...partial, ...cancellations(waiting, why), endOf(turnId, 'cancelled')]
        // Someone may decide one of the calls or end the turn at this moment; then try again.
        if (!(await this.#once(sessionId, [...ending, ...then(turnId === null ? 0 : waiting.length)]))) continue
        answer?.stored()
        if (turnId !== null) this.#chat(sessionId).driver.cancel()
        return
      }
    } finally {
      answer?.release()
    }
  }

  /** A session without a first model was removed or never opened: nothing may be written to it. */
  async #begun(sessionId: string): Promise<Transcript> {
    const transcript = await this.transcript(sessionId)
    if (transcript.model !== null) return transcript
    throw new AppError('not-found', 'unknown_session', 'There is no such session; open it again.')
  }

  async #once(sessionId: string, events: NewEvent[]): Promise<boolean> {
    try {
      await appendEvents(this.#deps, sessionId, events)
      return true
    } catch (error) {
      if (isAppError(error, 'event_exists')) return false
      throw error
    }
  }

  #chat(sessionId: string): OpenChat {
    const known = this.#open.get(sessionId)
    if (known) return known
    // A model may get more history than usual, so hold more then.
    const heldChars = Math.max(MIN_HELD_CHARS, CHARS_PER_TOKEN * this.#deps.options.maxHistoryTokens)
    const conversation = new Conversation(this.#deps.events, sessionId, heldChars)
    const driver = new TurnDriver(sessionId, conversation, this.#deps, () => this.#forget(sessionId, chat))
    const chat: OpenChat = { conversation, driver, users: 0 }
    this.#open.set(sessionId, chat)
    return chat
  }

  #forget(sessionId: string, chat: OpenChat): void {
    if (chat.users === 0 && !chat.driver.isBusy && this.#open.get(sessionId) === chat) this.#open.delete(sessionId)
  }
}

function turnOfMessage({ entries }: Transcript, id: string | undefined): string | undefined {
  if (id === undefined) return undefined
  const entry = entries.findLast((candidate) => candidate.kind === 'user' && candidate.id === id)
  return entry?.kind === 'user' ? entry.turnId : undefined
}

function nothingToRetry(): AppError {
  return new AppError('conflict', 'nothing_to_retry', 'There is no answer to retry; send a message.')
}

function turnInProgress(): AppError {
  return new AppError('conflict', 'turn_in_progress', 'The last message is still in progress; wait for it, or stop it.')
}
