/**
 * What a person does in a session: sends, decides, stops, starts afresh. Each is an entry of the log, made once, by whichever
 * instance hears of it first; the turn driver carries on from there. Authority over the session is the caller's to check.
 */

import type { CommandData } from '../../../contract/commands.ts'
import type { EventData } from '../../../contract/events.ts'
import { type PathTarget, pathOf } from '../../../contract/path-target.ts'
import { type CallEntry, callOf, coveredCalls, pendingCalls, type Transcript } from '../../../contract/transcript.ts'
import { AppError, isAppError } from '../../lib/errors.ts'
import type { NewEvent } from '../../storage/event-log.ts'
import { appendEvents, onceKey } from '../sandboxes/session-events.ts'
import { editedTarget, resolveIn, timesAsked } from './call-targets.ts'
import type { ChatDeps } from './chat-options.ts'
import { Conversation } from './conversation.ts'
import { TurnDriver } from './turn-driver.ts'
import { endOf, serverStopped } from './turn-events.ts'

const MIN_HELD_CHARS = 2 * 1024 * 1024
const CHARS_PER_TOKEN = 8

interface OpenChat {
  conversation: Conversation
  driver: TurnDriver
  /** Tabs and requests that look at it; without any, and without a turn, it is forgotten. */
  users: number
}

export class Chat {
  readonly #deps: ChatDeps
  readonly #open = new Map<string, OpenChat>()

  constructor(deps: ChatDeps) {
    this.#deps = deps
  }

  /** Keeps the session's conversation at hand, and carries on a turn that a crash left behind. Call the result when done. */
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

  /** For now and then: the instance that carried the turn on may be gone, without a word to those who look on elsewhere. */
  nudge(sessionId: string): void {
    this.#open.get(sessionId)?.driver.wake()
  }

  /** The first model of a new session; a no-op later. Returns the session's model. */
  async begin(sessionId: string, model: string): Promise<string> {
    const transcript = await this.transcript(sessionId)
    if (transcript.model !== null) return transcript.model
    const first = await this.#once(sessionId, [{ type: 'model:selected', data: { model }, key: 'model:first' }])
    // From now on the janitor knows of it, so that a conversation without a message ends in its time too.
    if (first) await this.#deps.sessions.hold(sessionId, async () => {})
    return (await this.transcript(sessionId)).model ?? model
  }

  get openIds(): string[] {
    return [...this.#open.keys()]
  }

  /** Conversations in memory. */
  get openCount(): number {
    return this.#open.size
  }

  async transcript(sessionId: string): Promise<Transcript> {
    const chat = this.#chat(sessionId)
    try {
      return await chat.conversation.refresh()
    } finally {
      // Whoever only asks, of a session that nobody has open, leaves nothing behind.
      this.#forget(sessionId, chat)
    }
  }

  /** With all calls whole, which `transcript` may not have of a long conversation. Not kept in memory. */
  async whole(sessionId: string): Promise<Transcript> {
    const chat = this.#chat(sessionId)
    try {
      const transcript = await chat.conversation.refresh()
      if (!chat.conversation.isShortened) return transcript
      return await new Conversation(this.#deps.events, sessionId).refresh()
    } finally {
      this.#forget(sessionId, chat)
    }
  }

  /** A message that is there already, under the same id, is sent again only because its answer was lost: that one counts. */
  async send(sessionId: string, { text, id }: CommandData<'message'>): Promise<{ turnId: string }> {
    const transcript = await this.#begun(sessionId)
    const known = turnOfMessage(transcript, id)
    if (known) return { turnId: known }
    if (transcript.turnId !== null) throw turnInProgress()
    await this.#deps.checkQuota(sessionId)
    const number = transcript.turns + 1
    const data = { turnId: `t${number}`, text, ...(id !== undefined && { id }) }
    const sent = await this.#once(sessionId, [{ type: 'user:message', data, key: `turn:${number}` }])
    const turnId = sent ? data.turnId : turnOfMessage(await this.transcript(sessionId), id)
    if (!turnId) throw turnInProgress()
    this.#chat(sessionId).driver.wake()
    return { turnId }
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
      const call = callOf(transcript, answer.callId)
      if (!call) throw new AppError('not-found', 'unknown_call', 'There is no such call in this session.')
      if (call.decision) throw alreadyDecided()
      const events = [decisionOn(call, answer)]
      if (answer.approved && answer.remember) events.push(...this.#remembered(transcript, call))
      if (await this.#once(sessionId, events)) return call
      // One of these calls was decided elsewhere at this very moment. If it was not this one, look again.
    }
  }

  #remembered(transcript: Transcript, call: CallEntry): NewEvent[] {
    const { server, name, definition } = call
    // Only a tool that the rules still ask about: a call that a rule has come to deny keeps its card.
    const covered = this.#deps.policy(server, name) === 'deny' ? [] : coveredCalls(transcript, call)
    return [
      { type: 'tool:allowed', data: { server, name, definition } },
      ...covered.map((each) => resolution(each, { approved: true, by: 'session' }))
    ]
  }

  /** Where a waiting call would lead with these arguments: what an edit shows before it is approved. */
  async target(sessionId: string, { callId, args }: CommandData<'tool:target'>): Promise<{ target?: PathTarget }> {
    const call = callOf(await this.#begun(sessionId), callId)
    if (!call) throw new AppError('not-found', 'unknown_call', 'There is no such call in this session.')
    if (call.decision) throw alreadyDecided()
    const path = pathOf(call, args)
    if (path === undefined) return {}
    const [target] = await this.#deps.sessions.hold(sessionId, (hold) => resolveIn(hold, [path]))
    return target ? { target } : {}
  }

  /** Ends the turn: what waits is not run, what runs is stopped. */
  async cancel(sessionId: string): Promise<void> {
    const { turnId } = await this.#begun(sessionId)
    if (turnId === null) throw new AppError('conflict', 'no_turn', 'Nothing is going on that could be stopped.')
    await this.#stopAnd(sessionId, () => [], { only: turnId })
  }

  async reset(sessionId: string): Promise<void> {
    const why = 'A fresh history was started.'
    const then = (cancelled: number) => [...cancelledNotice(cancelled, why), { type: 'history:reset', data: {} }]
    await this.#stopAnd(sessionId, then, { why })
  }

  /** Starts a fresh history with another model; files and the readable past stay. Refused if it cancels more than `maxCancelled`. */
  async selectModel(sessionId: string, model: string, maxCancelled = Number.POSITIVE_INFINITY): Promise<void> {
    if ((await this.#begun(sessionId)).model === model) return
    await this.#deps.models.prove(model)
    const why = `The model was switched to ${model}.`
    const then = (cancelled: number): NewEvent[] => {
      if (cancelled > maxCancelled) throw approvalsWaiting(cancelled)
      return [...cancelledNotice(cancelled, why), { type: 'model:selected', data: { model } }]
    }
    await this.#stopAnd(sessionId, then, { why })
  }

  async revoke(sessionId: string, { server, name }: CommandData<'tool:revoke'>): Promise<void> {
    const { allowed } = await this.#begun(sessionId)
    if (!Object.hasOwn(allowed, `${server}/${name}`)) return
    await appendEvents(this.#deps, sessionId, [{ type: 'tool:allow_revoked', data: { server, name } }])
  }

  /** Gives the session as much again as it may use. */
  async raiseLimit(sessionId: string): Promise<void> {
    const { usage } = await this.#begun(sessionId)
    const { maxSessionTokens } = this.#deps.options.limits
    if (maxSessionTokens === undefined) throw new AppError('conflict', 'no_limit', 'This server sets no such limit.')
    const tokens = usage.inputTokens + usage.outputTokens + maxSessionTokens
    await appendEvents(this.#deps, sessionId, [{ type: 'limit:raised', data: { tokens } }])
  }

  /** A word to the people in the session. */
  async notice(sessionId: string, code: string, message: string): Promise<void> {
    await appendEvents(this.#deps, sessionId, [{ type: 'session:notice', data: { code, message } }])
  }

  /** Lets go of every turn; each stays open in the log, and goes on when someone comes back to it. */
  async stop(): Promise<void> {
    await Promise.all([...this.#open.values()].map(({ driver }) => driver.close(serverStopped())))
  }

  /** Ends the turn on every instance and forgets the session, which is about to be removed. */
  async end(sessionId: string): Promise<void> {
    const { turnId } = await this.transcript(sessionId)
    if (turnId !== null) await this.#stopAnd(sessionId, () => [], { only: turnId })
    await this.forget(sessionId)
  }

  /** The session is no more: what is known of it is worth nothing. */
  async forget(sessionId: string): Promise<void> {
    const chat = this.#open.get(sessionId)
    this.#open.delete(sessionId)
    await chat?.driver.close()
  }

  /**
   * Ends the turn, if there is one, and appends what follows from that, in one piece. `then` is told how many waiting approvals
   * that cancels. `only`: not when it is another turn. `why` is recorded with each cancelled approval.
   */
  async #stopAnd(
    sessionId: string,
    then: (cancelled: number) => NewEvent[],
    { only, why }: { only?: string; why?: string } = {}
  ): Promise<void> {
    for (;;) {
      const transcript = await this.#begun(sessionId)
      const { turnId } = transcript
      if (only !== undefined && turnId !== only) return
      const waiting = pendingCalls(transcript)
      const ending = turnId === null ? [] : [...cancellations(waiting, why), endOf(turnId, 'cancelled')]
      // Someone may decide one of the calls, or end the turn, at this very moment: then we look again.
      if (!(await this.#once(sessionId, [...ending, ...then(turnId === null ? 0 : waiting.length)]))) continue
      if (turnId !== null) this.#chat(sessionId).driver.cancel()
      return
    }
  }

  /** A session without a first model was removed, or never opened: nothing may be written to it. */
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
    // A model may be given more than usual: then more is held.
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

function resolution(call: CallEntry, decision: Omit<EventData<'tool:approval_resolved'>, 'callId'>): NewEvent {
  const { callId } = call
  const key = onceKey('decision', callId, timesAsked(call))
  return { type: 'tool:approval_resolved', data: { callId, ...decision }, key }
}

function decisionOn(call: CallEntry, answer: CommandData<'tool:approval'>): NewEvent {
  const { approved, args, reason } = answer
  if (answer.hash !== undefined && answer.hash !== call.hash) {
    throw new AppError('conflict', 'stale', 'This answer is for another card than the one that is open; look again.')
  }
  if (args && !approved) throw new AppError('invalid', 'edit_of_rejection', 'Edited arguments go with an approval.')
  const target = args && editedTarget(call, args, answer.target)
  const edit = { ...(args ? { args } : {}), ...(target ? { target } : {}) }
  return resolution(call, { approved, by: 'human', ...(reason ? { reason } : {}), ...edit })
}

function cancellations(calls: CallEntry[], why?: string): NewEvent[] {
  const decision = { approved: false, by: 'cancel' as const, ...(why !== undefined && { reason: why }) }
  return calls.map((call) => resolution(call, decision))
}

/** For every tab: none of the waiting cards goes away without a word. */
function cancelledNotice(cancelled: number, why: string): NewEvent[] {
  if (cancelled === 0) return []
  const calls = cancelled === 1 ? '1 call that waited' : `${cancelled} calls that waited`
  const message = `${why} This cancelled ${calls} for approval.`
  return [{ type: 'session:notice', data: { code: 'approvals_cancelled', message } }]
}

function approvalsWaiting(waiting: number): AppError {
  const calls = waiting === 1 ? '1 call waits' : `${waiting} calls wait`
  const message = `${calls} for approval, and switching the model would cancel that. Look at the conversation, then switch again.`
  return new AppError('conflict', 'approvals_waiting', message)
}

function turnOfMessage({ entries }: Transcript, id: string | undefined): string | undefined {
  if (id === undefined) return undefined
  const entry = entries.findLast((candidate) => candidate.kind === 'user' && candidate.id === id)
  return entry?.kind === 'user' ? entry.turnId : undefined
}

function turnInProgress(): AppError {
  return new AppError(
    'conflict',
    'turn_in_progress',
    'The last message is still being worked on; wait for it, or stop it.'
  )
}

function alreadyDecided(): AppError {
  return new AppError('conflict', 'already_decided', 'Someone has decided this call already.')
}
