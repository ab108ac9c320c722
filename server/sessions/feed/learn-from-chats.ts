import { isOwnSource } from '../../../contract/own-sources.ts'
import type { CallEntry, Transcript } from '../../../contract/transcript.ts'
import { messageOf } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import type { SessionFeed } from './session-feed.ts'

export interface LearningDeps {
  feed: SessionFeed
  transcript(sessionId: string): Promise<Transcript>
  ownerOf(sessionId: string): Promise<string>
  learn(
    request: string,
    call: Pick<CallEntry, 'server' | 'name'>,
    owner: string,
    sessionId: string
  ): Promise<void> | void
  /** Forgets what was learned in a session that is gone. */
  forget(sessionId: string): Promise<void>
  logger: Logger
}

/** Longer messages are tasks, and no examples of what one tool is for. */
const MAX_MESSAGE = 300

/**
 * Teaches the router what a message of a chat was answered with: the first server's tool of its turn, if a person approved the call
 * and it succeeded. Calls that a rule allows don't count: the description of a tool could make the model call it for any message.
 */
export function learnFromChats({ feed, transcript, ownerOf, learn, forget, logger }: LearningDeps): void {
  const look = async (sessionId: string, callId: string) => {
    const { entries, calls } = await transcript(sessionId)
    const call = calls[callId]
    const own = Object.values(calls).filter(({ server, turnId }) => !isOwnSource(server) && turnId === call?.turnId)
    if (!call || own[0] !== call || call.decision?.by !== 'human') return
    const message = entries.find((entry) => entry.kind === 'user' && entry.turnId === call.turnId)
    if (message?.kind !== 'user' || message.text.length > MAX_MESSAGE) return
    await learn(message.text, call, await ownerOf(sessionId), sessionId)
  }
  feed.subscribe({
    gone(sessionId) {
      forget(sessionId).catch((error) => {
        const message = `What was learned from a deleted session is not forgotten yet: ${messageOf(error)}`
        logger.warn({ err: error, sessionId }, message)
      })
    },
    stored(sessionId, events) {
      for (const { type, data } of events) {
        if (type !== 'tool:result' || data.isError === true) continue
        look(sessionId, String(data.callId)).catch((error) =>
          logger.debug({ sessionId }, `Learned nothing from a call: ${messageOf(error)}`)
        )
      }
    }
  })
}
