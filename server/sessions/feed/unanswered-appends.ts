/**
 * Publishes stored events, also those whose append was carried out although the store's answer to it was lost. Such events are found
 * in the log when the store answers again; until then nobody would hear of them, because no later event shows clients that they miss one.
 * Does not cover events of an instance that died before it could look; clients get those from `send-missing.ts`.
 */
import { BoundedMap } from '../../lib/bounded-map.ts'
import { canonicalJson } from '../../lib/canonical-json.ts'
import { messageOf } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import { backoffMs } from '../../lib/waiting/backoff.ts'
import type { EventLog, NewEvent, StoredEvent } from '../../storage/event-log.ts'

const MAX_KNOWN = 10_000
const MAX_WAITING = 1000
/** How far back to look in a session in which nothing was published here before. */
const LOOK_BACK = 100
const PACE = { firstMs: 200, maxMs: 3000 }
/** A Redis that hung works off what it had received, perhaps after it has answered us. */
const LOOKS = 3

export interface UnansweredOptions {
  events: Pick<EventLog, 'read' | 'lastSeq'>
  publish(sessionId: string, events: StoredEvent[]): void
  /** Called after events were found and published. */
  found(sessionId: string): void
  logger: Logger
}

interface Waiting {
  sessionId: string
  events: NewEvent[]
  /** It can only be after this one; undefined if nothing was published here before. */
  after: number | undefined
  /** The events that were published since, by their seq. */
  published: Set<number>
  looks: number
}

export class UnansweredAppends {
  readonly #options: UnansweredOptions
  /** The last event of each session that was published here. */
  readonly #last = new BoundedMap<string, number>(MAX_KNOWN)
  #waiting: Waiting[] = []
  #timer: NodeJS.Timeout | undefined
  #failures = 0
  #isClosed = false

  constructor(options: UnansweredOptions) {
    this.#options = options
  }

  /** Number of appends that may still be found. */
  get waiting(): number {
    return this.#waiting.length
  }

  readonly #publish = (sessionId: string, events: StoredEvent[]): void => {
    const last = events.at(-1)
    if (last) this.#last.set(sessionId, Math.max(last.seq, this.#last.get(sessionId) ?? 0))
    for (const waiting of this.#waiting)
      if (waiting.sessionId === sessionId) for (const { seq } of events) waiting.published.add(seq)
    this.#options.publish(sessionId, events)
  }

  /** The store failed to answer this append. */
  readonly #unanswered = (sessionId: string, events: NewEvent[]): void => {
    this.#waiting.push({ sessionId, events, after: this.#last.get(sessionId), published: new Set(), looks: 0 })
    if (this.#waiting.length > MAX_WAITING) this.#waiting.shift()
    this.#lookLater()
  }

  /** For everyone who appends to the logs of sessions. */
  get hooks() {
    return { publish: this.#publish, unanswered: this.#unanswered }
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  #lookLater(): void {
    if (this.#isClosed || this.#timer !== undefined || this.#waiting.length === 0) return
    this.#timer = setTimeout(() => void this.#look(), backoffMs(this.#failures + 1, PACE)).unref()
  }

  async #look(): Promise<void> {
    this.#failures += 1
    try {
      for (const waiting of [...this.#waiting]) {
        const isFound = await this.#publishStored(waiting)
        waiting.looks += 1
        if (isFound || waiting.looks >= LOOKS) this.#waiting = this.#waiting.filter((other) => other !== waiting)
      }
      if (this.#waiting.length === 0) this.#failures = 0
    } catch (error) {
      this.#options.logger.debug({ err: error }, `Stored events can't be looked for yet: ${messageOf(error)}`)
    }
    this.#timer = undefined
    this.#lookLater()
  }

  async #publishStored({ sessionId, events, after, published }: Waiting): Promise<boolean> {
    const { events: log, found, logger } = this.#options
    const from = after ?? Math.max(0, (await log.lastSeq(sessionId)) - LOOK_BACK)
    const wanted = events.map(textOf)
    const stored = await log.read(sessionId, { after: from })
    const texts = stored.map((event) => (published.has(event.seq) ? '' : textOf(event)))
    const at = texts.findIndex((_, i) => wanted.every((text, j) => text === texts[i + j]))
    if (at < 0) return false
    const ours = stored.slice(at, at + events.length)
    logger.info(
      { sessionId, seq: ours[0]?.seq },
      'Events were stored although the store did not answer; they are published now.'
    )
    this.#publish(sessionId, ours)
    found(sessionId)
    return true
  }
}

/** As it is in the store, where there is no undefined. */
function textOf({ type, data }: NewEvent | StoredEvent): string {
  return canonicalJson({ type, data: JSON.parse(JSON.stringify(data)) })
}
