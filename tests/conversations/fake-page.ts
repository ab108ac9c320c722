import type { SessionEvent } from '../../contract/events.ts'
import { applyEvent, emptyTranscript, type Transcript } from '../../contract/transcript.ts'
import { shownEvent, shownTranscript } from '../../server/sessions/feed/shown-transcript.ts'
import type { StoredEvent } from '../../server/storage/event-log.ts'

/** As it goes over the wire. */
export const sent = <T>(value: T): T => JSON.parse(JSON.stringify(value))

/** Follows a session as the page does: a snapshot, then each event in its order; when one is missing, a snapshot again. */
export class FakePage {
  transcript: Transcript = emptyTranscript()
  readonly #whole: () => Promise<Transcript>
  #isOnline = false
  /** Events that arrive while a snapshot is on its way. */
  #waiting: SessionEvent[] | undefined
  #loading: Promise<void> = Promise.resolve()

  constructor(whole: () => Promise<Transcript>) {
    this.#whole = whole
  }

  connect(): Promise<void> {
    this.#isOnline = true
    this.#waiting = []
    this.#loading = this.#loading.then(async () => {
      this.transcript = sent(shownTranscript(await this.#whole()).transcript)
      const waiting = this.#waiting ?? []
      this.#waiting = undefined
      for (const event of waiting) this.#take(event)
    })
    return this.#loading
  }

  disconnect(): void {
    this.#isOnline = false
  }

  get isOnline(): boolean {
    return this.#isOnline
  }

  publish(events: StoredEvent[]): void {
    for (const event of events) {
      const { type, seq, at } = event
      if (this.#isOnline) this.#take(sent({ type, seq, at, data: shownEvent(event) }) as SessionEvent)
    }
  }

  #take(event: SessionEvent): void {
    if (this.#waiting) return void this.#waiting.push(event)
    if (event.seq <= this.transcript.seq) return
    if (event.seq === this.transcript.seq + 1) applyEvent(this.transcript, event)
    else void this.connect()
  }
}
