import { randomUUID } from 'node:crypto'
import type { SessionSummary } from '../../../contract/rest.ts'
import type { Models } from '../../models/port.ts'
import type { EventLog, NewEvent } from '../../storage/event-log.ts'
import type { Chat } from '../chat/chat.ts'
import { importedEvents } from './imported-events.ts'
import type { SessionDirectory } from './session-directory.ts'

interface ImportDeps {
  directory: Pick<SessionDirectory, 'open' | 'change' | 'destroy' | 'summary'>
  chat: Pick<Chat, 'begin'>
  models: Pick<Models, 'resolve'>
  events: Pick<EventLog, 'append'>
  /** Throws if the session may not start new work. */
  checkQuota: (sessionId: string) => Promise<void>
}

/** The limits of one append are higher: 1000 events and some megabytes. */
const EVENTS_AT_ONCE = 20

export type ImportConversation = (value: unknown, owner: string, address: string) => Promise<SessionSummary>

/** Opens a new session of this owner with an exported conversation in it, and the default model. */
export function conversationImport(deps: ImportDeps): ImportConversation {
  return async (value, owner, address) => {
    const { title, events } = importedEvents(value)
    const sessionId = randomUUID()
    await deps.directory.open(sessionId, { owner }, { address })
    try {
      await deps.checkQuota(sessionId)
      await deps.chat.begin(sessionId, await deps.models.resolve(undefined))
      // Not published: nobody has it open, and an imported call is no call for the audit log.
      for (const part of partsOf(events)) await deps.events.append(sessionId, part)
      await deps.directory.change(sessionId, { title: title || 'Imported conversation' })
      return await deps.directory.summary(sessionId)
    } catch (error) {
      await deps.directory.destroy(sessionId).catch(() => {})
      throw error
    }
  }
}

function partsOf(events: NewEvent[]): NewEvent[][] {
  const count = Math.ceil(events.length / EVENTS_AT_ONCE)
  return Array.from({ length: count }, (_, at) => events.slice(at * EVENTS_AT_ONCE, (at + 1) * EVENTS_AT_ONCE))
}
