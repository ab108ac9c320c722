/** The events that sessions write themselves: starts and results of calls, and notices about the sandbox. */

import type { EventData } from '../../../contract/events.ts'
import { PROGRAMS } from '../../../contract/own-sources.ts'
import { isAppError, messageOf } from '../../lib/errors.ts'
import { backoffMs } from '../../lib/waiting/backoff.ts'
import type { ContentStore } from '../../storage/checkpoint-store.ts'
import type { NewEvent, StoredEvent } from '../../storage/event-log.ts'
import { keepImages } from '../attachments/keep-images.ts'
import type { SessionsDeps } from './session-options.ts'

const STORE_PATIENCE_MS = 30_000
const UNKNOWN_TEXT = 'It may have run in part, in full or not at all, and was not run again.'

export type SessionNoticeCode =
  | 'sandbox_replaced'
  | 'sandbox_recycled'
  | 'sandbox_tampered'
  | 'files_restored'
  | 'files_not_kept'
  | 'checkpoint_failed'

type EventDeps = Pick<SessionsDeps, 'events' | 'publish' | 'unanswered' | 'logger'> & { checkpoints: ContentStore }

/** Appends to a session's log and publishes what was stored. Without an epoch, it does not matter who holds the session. */
export async function appendEvents(
  deps: Pick<SessionsDeps, 'events' | 'publish' | 'unanswered'>,
  sessionId: string,
  events: NewEvent[],
  epoch?: number
): Promise<void> {
  let stored: StoredEvent[]
  try {
    stored = await deps.events.append(sessionId, events, epoch === undefined ? {} : { epoch })
  } catch (error) {
    if (isAppError(error, 'store_unavailable')) deps.unanswered?.(sessionId, events)
    throw error
  }
  deps.publish(sessionId, stored)
}

export class SessionEvents {
  readonly #deps: EventDeps
  readonly #sessionId: string

  constructor(deps: EventDeps, sessionId: string) {
    this.#deps = deps
    this.#sessionId = sessionId
  }

  append(events: NewEvent[], epoch: number): Promise<void> {
    return appendEvents(this.#deps, this.#sessionId, events, epoch)
  }

  /**
   * For the result of a call, which has already run, so its result must not be lost: waits for a store that is unavailable for a
   * while. If the store failed while it answered, the result may be stored already; its key prevents a second one.
   */
  async appendResult(result: NewEvent, epoch: number): Promise<void> {
    const until = Date.now() + STORE_PATIENCE_MS
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.append([result], epoch)
      } catch (error) {
        // It was stored before, and is published by the one who stored it.
        if (isAppError(error, 'event_exists')) return
        if (!isAppError(error) || error.kind !== 'unavailable' || Date.now() > until) throw error
        await new Promise((resolve) => setTimeout(resolve, backoffMs(attempt, { firstMs: 100, maxMs: 2000 })))
      }
    }
  }

  /** The content of a result with its images in the store. If that fails, they stay in it, and the log leaves out what is too large. */
  async keepImages(content: readonly unknown[]): Promise<readonly unknown[]> {
    try {
      return await keepImages(this.#deps.checkpoints, this.#sessionId, content)
    } catch (error) {
      this.#deps.logger.warn({ sessionId: this.#sessionId }, `An image was not stored: ${messageOf(error)}`)
      return content
    }
  }

  /** A notice to the user. If it can't be stored, the work continues. */
  async notice(code: SessionNoticeCode, message: string, epoch: number): Promise<void> {
    try {
      await this.append([{ type: 'session:notice', data: { code, message } }], epoch)
    } catch (error) {
      this.#deps.logger.warn({ sessionId: this.#sessionId, code }, `A notice was not stored: ${messageOf(error)}`)
    }
  }

  /** Records in the log that calls of an earlier owner were interrupted, so that nobody waits for them or runs them again. */
  async reportInterrupted(epoch: number, running: ReadonlySet<string>): Promise<string[]> {
    const open = new Set<string>()
    const programs = new Set<unknown>()
    for await (const { type, data } of this.#all()) {
      if (type === 'tool:approval_required' && (data.server === PROGRAMS || data.program)) programs.add(data.callId)
      // A program is not lost with its server: it runs again from its log, which knows more about its calls.
      if (type === 'tool:started' && !programs.has(data.callId)) open.add(String(data.callId))
      // It needs approval again, so it did nothing.
      else if (type === 'tool:result' || type === 'tool:approval_required') open.delete(String(data.callId))
    }
    const interrupted = [...open].filter((callId) => !running.has(callId))
    if (interrupted.length > 0)
      await this.append(
        interrupted.map((callId) => lostWithServer(callId)),
        epoch
      )
    return interrupted
  }

  /** All events of the session, without their large fields. */
  async *#all(): AsyncIterable<StoredEvent> {
    for (let after = 0; ; ) {
      const page = await this.#deps.events.read(this.#sessionId, { bareUntil: Number.POSITIVE_INFINITY, after })
      yield* page
      const last = page.at(-1)
      if (!last) return
      after = last.seq
    }
  }
}

/** A call has one result: if there are two, the first one counts. */
export function resultOf(callId: string, data: Omit<EventData<'tool:result'>, 'callId'>): NewEvent {
  return { type: 'tool:result', data: { callId, ...data }, key: `result:${callId}` }
}

/** `before` is what the call had written until then. */
export function unknownOutcome(
  callId: string,
  why: string,
  { interruptedBy, before = [] }: { interruptedBy?: 'server'; before?: unknown[] } = {}
): NewEvent {
  const content = [...before, { type: 'text', text: `${why} ${UNKNOWN_TEXT}` }]
  return resultOf(callId, { isError: true, outcome: 'unknown', content, ...(interruptedBy && { interruptedBy }) })
}

/**
 * For a call that an instance started but did not finish: it was killed or restarted, or another instance took over the session.
 */
export function lostWithServer(callId: string): NewEvent {
  return unknownOutcome(callId, 'The server that ran this was restarted, or lost the session.', {
    interruptedBy: 'server'
  })
}

/** The key of an event that is stored once per approval request. */
export function onceKey(what: 'decision' | 'started' | 'previewed', callId: string, times: number): string {
  return times > 1 ? `${what}-${times}:${callId}` : `${what}:${callId}`
}
