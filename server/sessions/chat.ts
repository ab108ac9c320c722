/**
 * What a person does in a session: sends, decides, stops, starts afresh. Each is an entry of the log, made once, by whichever
 * instance hears of it first; the turn driver carries on from there. Authority over the session is the caller's to check.
 */
import type { CommandData } from '../../contract/commands.ts'
import { type CallEntry, pendingCalls, type Transcript } from '../../contract/transcript.ts'
import { AppError, isAppError } from '../lib/errors.ts'
import type { NewEvent } from '../storage/event-log.ts'
import type { ChatDeps } from './chat-options.ts'
import { Conversation } from './conversation.ts'
import { endOf, TurnDriver } from './turn-driver.ts'

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
      void chat.driver.idle().then(() => this.#forget(sessionId, chat))
    }
  }

  /** The first model of a new session; a no-op later. Returns the session's model. */
  async begin(sessionId: string, model: string): Promise<string> {
    const transcript = await this.transcript(sessionId)
    if (transcript.model !== null) return transcript.model
    await this.#once(sessionId, [{ type: 'model:selected', data: { model }, key: 'model:first' }])
    return (await this.transcript(sessionId)).model ?? model
  }

  transcript(sessionId: string): Promise<Transcript> {
    return this.#chat(sessionId).conversation.refresh()
  }

  async send(sessionId: string, { text }: CommandData<'message'>): Promise<{ turnId: string }> {
    const { turnId: open, turns } = await this.transcript(sessionId)
    if (open !== null) throw turnInProgress()
    const number = turns + 1
    const turnId = `t${number}`
    const sent = await this.#once(sessionId, [{ type: 'user:message', data: { turnId, text }, key: `turn:${number}` }])
    if (!sent) throw turnInProgress()
    this.#chat(sessionId).driver.wake()
    return { turnId }
  }

  async decide(sessionId: string, answer: CommandData<'tool:approval'>): Promise<void> {
    const { callId, approved, args, reason } = answer
    const { calls } = await this.transcript(sessionId)
    const call = calls[callId]
    if (!call) throw new AppError('not-found', 'unknown_call', 'There is no such call in this session.')
    if (call.decision) throw alreadyDecided()
    if (answer.hash !== undefined && answer.hash !== call.hash) {
      throw new AppError('conflict', 'stale', 'This answer is for another card than the one that is open; look again.')
    }
    if (args && !approved) throw new AppError('invalid', 'edit_of_rejection', 'Edited arguments go with an approval.')
    const data = { callId, approved, by: 'human', ...(reason ? { reason } : {}), ...(args ? { args } : {}) }
    const events: NewEvent[] = [{ type: 'tool:approval_resolved', data, key: `decision:${callId}` }]
    if (approved && answer.remember) events.push(remembered(call))
    if (!(await this.#once(sessionId, events))) throw alreadyDecided()
    if (approved && call.definitionChange)
      await this.#deps.guard.accept(call.server, call.name, call.definitionChange.after)
    this.#chat(sessionId).driver.wake()
  }

  /** Ends the turn: what waits is not run, what runs is stopped. */
  async cancel(sessionId: string): Promise<void> {
    const transcript = await this.transcript(sessionId)
    const { turnId } = transcript
    if (turnId === null) throw new AppError('conflict', 'no_turn', 'Nothing is going on that could be stopped.')
    const waiting = pendingCalls(transcript).map(({ callId }) => ({
      type: 'tool:approval_resolved',
      data: { callId, approved: false, by: 'cancel' },
      key: `decision:${callId}`
    }))
    // Someone may decide one of them at this very moment: then the rest is looked at again.
    if (!(await this.#once(sessionId, [...waiting, endOf(turnId, 'cancelled')])))
      return this.#cancelRest(sessionId, turnId)
    this.#chat(sessionId).driver.cancel()
  }

  async #cancelRest(sessionId: string, turnId: string): Promise<void> {
    if ((await this.transcript(sessionId)).turnId === turnId) await this.cancel(sessionId)
  }

  async reset(sessionId: string): Promise<void> {
    await this.#stopTurn(sessionId)
    await this.#deps.append(sessionId, [{ type: 'history:reset', data: {} }])
  }

  /** Starts a fresh history with another model; files and the readable past stay. */
  async selectModel(sessionId: string, model: string): Promise<void> {
    if ((await this.transcript(sessionId)).model === model) return
    await this.#deps.models.prove(model)
    await this.#stopTurn(sessionId)
    await this.#deps.append(sessionId, [{ type: 'model:selected', data: { model } }])
  }

  async revoke(sessionId: string, tool: CommandData<'tool:revoke'>): Promise<void> {
    await this.#deps.append(sessionId, [{ type: 'tool:allow_revoked', data: tool }])
  }

  /** Doubles what the session may use. */
  async raiseLimit(sessionId: string): Promise<void> {
    const { usage } = await this.transcript(sessionId)
    const used = usage.inputTokens + usage.outputTokens
    const tokens = used + (this.#deps.options.limits.maxSessionTokens ?? used)
    await this.#deps.append(sessionId, [{ type: 'limit:raised', data: { tokens } }])
  }

  /** Waits until nothing runs; for a clean stop. */
  async settle(): Promise<void> {
    await Promise.all([...this.#open.values()].map(({ driver }) => driver.idle()))
  }

  forgetIfUnused(sessionId: string): void {
    const chat = this.#open.get(sessionId)
    if (chat) this.#forget(sessionId, chat)
  }

  forget(sessionId: string): void {
    this.#open.get(sessionId)?.driver.cancel()
    this.#open.delete(sessionId)
  }

  async #stopTurn(sessionId: string): Promise<void> {
    if ((await this.transcript(sessionId)).turnId !== null) await this.cancel(sessionId)
  }

  async #once(sessionId: string, events: NewEvent[]): Promise<boolean> {
    try {
      await this.#deps.append(sessionId, events)
      return true
    } catch (error) {
      if (isAppError(error, 'event_exists')) return false
      throw error
    }
  }

  #chat(sessionId: string): OpenChat {
    const known = this.#open.get(sessionId)
    if (known) return known
    const conversation = new Conversation(this.#deps.events, sessionId)
    const chat = { conversation, driver: new TurnDriver(sessionId, conversation, this.#deps), users: 0 }
    this.#open.set(sessionId, chat)
    return chat
  }

  #forget(sessionId: string, chat: OpenChat): void {
    if (chat.users === 0 && !chat.driver.isDriving && this.#open.get(sessionId) === chat) this.#open.delete(sessionId)
  }
}

function remembered({ server, name, definition }: CallEntry): NewEvent {
  return { type: 'tool:allowed', data: { server, name, definition } }
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
