import { EVENT_SCHEMAS, type SessionEvent } from '../../contract/events.ts'
import { applyEvent, emptyTranscript, type Transcript } from '../../contract/transcript.ts'
import { sinceFreshStart } from '../agent/model-history.ts'
import type { EventLog, StoredEvent } from '../storage/event-log.ts'

/** A session's log, folded. A cache and no more: `refresh` reads what was appended since, by whomever. */
export class Conversation {
  readonly #log: EventLog
  readonly #sessionId: string
  #transcript = emptyTranscript()
  #recent: SessionEvent[] = []
  #last: StoredEvent | undefined
  #tail: Promise<unknown> = Promise.resolve()

  constructor(log: EventLog, sessionId: string) {
    this.#log = log
    this.#sessionId = sessionId
  }

  get transcript(): Transcript {
    return this.#transcript
  }

  /** The events since the last fresh start: all that a model is ever told. */
  get recent(): readonly SessionEvent[] {
    return this.#recent
  }

  refresh(): Promise<Transcript> {
    const run = this.#tail.then(() => this.#refresh())
    this.#tail = run.catch(() => {})
    return run
  }

  /** Reads the last known event again: if it is not there, the log was removed or lost, and what was folded is true no more. */
  async #refresh(): Promise<Transcript> {
    for (;;) {
      const last = this.#last
      const page = await this.#log.read(this.#sessionId, { after: last ? last.seq - 1 : 0 })
      if (last && !isSame(page.shift(), last)) {
        this.#forget()
        continue
      }
      for (const event of page) this.#apply(event)
      if (page.length === 0) return this.#transcript
    }
  }

  #forget(): void {
    this.#transcript = emptyTranscript()
    this.#recent = []
    this.#last = undefined
  }

  #apply(stored: StoredEvent): void {
    this.#last = stored
    const event = asSessionEvent(stored)
    if (!event) {
      // Written by a newer version: its place in the order counts, its meaning is not ours.
      this.#transcript.seq = stored.seq
      return
    }
    applyEvent(this.#transcript, event)
    this.#recent.push(event)
    if (event.type === 'model:selected' || event.type === 'history:reset')
      this.#recent = [...sinceFreshStart(this.#recent)]
  }
}

function isSame(found: StoredEvent | undefined, known: StoredEvent): boolean {
  return found?.seq === known.seq && found.at === known.at && found.type === known.type
}

function asSessionEvent(stored: StoredEvent): SessionEvent | undefined {
  return stored.type in EVENT_SCHEMAS ? (stored as SessionEvent) : undefined
}
