/**
 * The conversations in memory, each with the driver of its turns. A conversation stays while someone uses it or a turn runs. It is only a
 * cache of the log: dropping it loses nothing.
 */
import type { Transcript } from '../../../contract/transcript.ts'
import { Conversation } from '../feed/conversation.ts'
import type { ChatDeps } from '../turns/chat-options.ts'
import { TurnDriver } from '../turns/turn-driver.ts'
import { serverStopped } from '../turns/turn-events.ts'

const MIN_HELD_CHARS = 2 * 1024 * 1024
const CHARS_PER_TOKEN = 8
/** How long running calls may take during shutdown. A second signal ends the wait. */
const CALL_GRACE_MS = 4_000

interface OpenChat {
  conversation: Conversation
  driver: TurnDriver
  /** Number of tabs and requests that use it. Without any, and without a turn, it is dropped from memory. */
  users: number
  /** Whether the log has every revert that was made before the conversation was opened here. */
  hasReverts?: true
}

export class OpenChats {
  protected readonly deps: ChatDeps
  readonly #open = new Map<string, OpenChat>()

  constructor(deps: ChatDeps) {
    this.deps = deps
  }

  /** Keeps the session's conversation in memory, and continues a turn that a crash interrupted. Call the result when done. */
  attach(sessionId: string): () => void {
    const chat = this.chatOf(sessionId)
    chat.users += 1
    const detach = this.deps.sessions.attach(sessionId)
    chat.driver.wake()
    return () => {
      chat.users -= 1
      detach()
      this.#drop(sessionId, chat)
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

  get openIds(): string[] {
    return [...this.#open.keys()]
  }

  /** Number of conversations in memory. */
  get openCount(): number {
    return this.#open.size
  }

  async transcript(sessionId: string): Promise<Transcript> {
    const chat = this.chatOf(sessionId)
    try {
      return await chat.conversation.refresh()
    } finally {
      // Drop it again: a query about a session that nobody has open must leave nothing in memory.
      this.#drop(sessionId, chat)
    }
  }

  /** The transcript with all calls complete; `transcript` may shorten them in a long conversation. Not kept in memory. */
  async fullTranscript(sessionId: string): Promise<Transcript> {
    const chat = this.chatOf(sessionId)
    try {
      const transcript = await chat.conversation.refresh()
      if (!chat.conversation.isShortened) return transcript
      return await new Conversation(this.deps.events, sessionId).refresh()
    } finally {
      this.#drop(sessionId, chat)
    }
  }

  /** Stops work on all turns. Each stays open in the log and continues when someone comes back to it. */
  async stop(hurry: AbortSignal = new AbortController().signal): Promise<void> {
    const patience = AbortSignal.any([hurry, AbortSignal.timeout(CALL_GRACE_MS)])
    await Promise.all([...this.#open.values()].map(({ driver }) => driver.close(serverStopped(), patience)))
    await this.deps.programs?.close?.()
  }

  /** The session was removed: drop everything known about it. */
  async forget(sessionId: string): Promise<void> {
    const chat = this.#open.get(sessionId)
    this.#open.delete(sessionId)
    await chat?.driver.close()
  }

  protected chatOf(sessionId: string): OpenChat {
    const known = this.#open.get(sessionId)
    if (known) return known
    // A model may get more history than usual, so hold more then.
    const heldChars = Math.max(MIN_HELD_CHARS, CHARS_PER_TOKEN * this.deps.options.maxHistoryTokens)
    const conversation = new Conversation(this.deps.events, sessionId, heldChars)
    const driver = new TurnDriver(sessionId, conversation, this.deps, () => this.#drop(sessionId, chat))
    const chat: OpenChat = { conversation, driver, users: 0 }
    this.#open.set(sessionId, chat)
    return chat
  }

  /** The answer that is being streamed here, if any. */
  protected answerOf(sessionId: string): TurnDriver['answer'] {
    return this.#open.get(sessionId)?.driver.answer
  }

  #drop(sessionId: string, chat: OpenChat): void {
    if (chat.users === 0 && !chat.driver.isBusy && this.#open.get(sessionId) === chat) this.#open.delete(sessionId)
  }
}
