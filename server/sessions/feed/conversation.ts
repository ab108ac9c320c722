import { EVENT_SCHEMAS, type SessionEvent } from '../../../contract/events.ts'
import { applyEvent, callOf, emptyTranscript, type Transcript } from '../../../contract/transcript.ts'
import { isFreshStart, sinceFreshStart } from '../../agent/model-history.ts'
import type { EventLog, StoredEvent } from '../../storage/event-log.ts'
import { shortened, weightOf } from './shown-transcript.ts'

/** Events that make up the model's history. */
const HISTORY_EVENTS = new Set<SessionEvent['type']>([
  'review:opened',
  'review:resolved',
  'review:applied',
  'user:message',
  'files:added',
  'files:reverted',
  'tools:offered',
  'agent:response',
  'turn:end',
  'turn:reopened',
  'session:notice',
  'model:selected',
  'history:reset',
  'history:rewound',
  'history:restored'
])

/**
 * A session's log, folded into a transcript. It is only a cache: `refresh` reads what any instance has appended since. Results
 * are large and a conversation can have many, so only the beginning of the oldest calls is kept once all exceed `maxHeldChars`.
 */
export class Conversation {
  readonly #log: EventLog
  readonly #sessionId: string
  #transcript = emptyTranscript()
  #recent: SessionEvent[] = []
  #last: StoredEvent | undefined
  #tail: Promise<unknown> = Promise.resolve()
  readonly #maxHeldChars: number
  #held: { callId: string; chars: number }[] = []
  #heldChars = 0
  #isShortened = false

  constructor(log: EventLog, sessionId: string, maxHeldChars = Number.POSITIVE_INFINITY) {
    this.#log = log
    this.#sessionId = sessionId
    this.#maxHeldChars = maxHeldChars
  }

  /** Whether `transcript` has shortened older calls; the log has them in full. */
  get isShortened(): boolean {
    return this.#isShortened
  }

  get transcript(): Transcript {
    return this.#transcript
  }

  /** The events for the model's history since the last fresh start; the answers of calls are in `transcript`, and here only what they changed. */
  get recent(): readonly SessionEvent[] {
    return this.#recent
  }

  refresh(): Promise<Transcript> {
    const run = this.#tail.then(() => this.#refresh())
    this.#tail = run.catch(() => {})
    return run
  }

  /** Reads the last known event again: if it is missing, the log was removed or lost, and the transcript is wrong. */
  async #refresh(): Promise<Transcript> {
    for (;;) {
      const last = this.#last
      const page = await this.#log.read(this.#sessionId, last ? { after: last.seq - 1, bareUntil: last.seq } : {})
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
    this.#held = []
    this.#heldChars = 0
    this.#isShortened = false
  }

  #apply(stored: StoredEvent): void {
    this.#last = stored
    const event = asSessionEvent(stored)
    if (!event) {
      // A newer version wrote this event: its position counts, but we don't know its meaning.
      this.#transcript.seq = stored.seq
      return
    }
    applyEvent(this.#transcript, event)
    if (event.type === 'tool:result') this.#hold(event.data.callId)
    if (HISTORY_EVENTS.has(event.type)) this.#recent.push(event)
    if (event.type === 'tool:result') this.#recent.push(...changedBy(event))
    if (isFreshStart(event)) this.#recent = [...sinceFreshStart(this.#recent)]
  }

  #hold(callId: string): void {
    const call = callOf(this.#transcript, callId)
    if (!call) return
    const chars = weightOf(call)
    this.#held.push({ callId, chars })
    this.#heldChars += chars
    while (this.#heldChars > this.#maxHeldChars && this.#held.length > 1) {
      const oldest = this.#held.shift()
      const old = oldest && callOf(this.#transcript, oldest.callId)
      if (!oldest || !old) continue
      this.#heldChars -= oldest.chars
      this.#transcript.calls[oldest.callId] = shortened(old)
      this.#isShortened = true
    }
  }
}

/** The paths that a call changed in the workspace: after a rewind or a revert the model is told about them. */
function changedBy(event: Extract<SessionEvent, { type: 'tool:result' }>): SessionEvent[] {
  const { callId, isError, isForked, changes } = event.data
  if (isForked || !changes) return []
  const files = changes.files.map(({ path, from }) => ({ path, ...(from !== undefined && { from }) }))
  return [{ ...event, data: { callId, isError, content: [], changes: { ...changes, files } } }]
}

function isSame(found: StoredEvent | undefined, known: StoredEvent): boolean {
  return found?.seq === known.seq && found.at === known.at && found.type === known.type
}

/** Undefined for an event of a newer version. */
export function asSessionEvent(stored: StoredEvent): SessionEvent | undefined {
  return stored.type in EVENT_SCHEMAS ? (stored as SessionEvent) : undefined
}
