/** The text that a turn is streaming. Clients that connect meanwhile get it from its beginning. */
import type { EventData } from '../../../contract/events.ts'
import type { ServerToClient } from '../../../contract/live.ts'
import { cutText } from '../../agent/bound-answer.ts'
import { estimateTokens } from '../../agent/trim-history.ts'
import { headOf, tailOf } from '../../lib/cut-text.ts'
import type { Cost, TokenUsage } from '../../models/port.ts'
import type { NewEvent } from '../../storage/event-log.ts'

type CutOffBy = NonNullable<EventData<'agent:response'>['partial']>

type Reasoning = Omit<Parameters<ServerToClient['agent:reasoning']>[0], 'turnId'>

interface AnswerListener {
  text(text: string): void
  reasoning(piece: Reasoning): void
  /** The price of a step that is cut off. */
  costOf(usage: TokenUsage): Cost | undefined
}

/** The answer that a model step streams. If the step is cut off, what was streamed is stored as a partial answer. */
export class LiveAnswer {
  readonly turnId: string
  /** A step is stored once: in full, or as a partial answer. */
  readonly key: string
  readonly #listener: AnswerListener
  #text = ''
  #reasoning = ''
  #requestedAt = 0
  #thoughtUntil = 0
  /** Deltas that arrive while the answer is held. */
  #held: string | undefined
  #inputTokens: number | undefined
  #isStored = false

  constructor(turnId: string, step: number, listener: AnswerListener) {
    this.turnId = turnId
    this.key = `step:${turnId}:${step}`
    this.#listener = listener
  }

  get text(): string {
    return this.#text
  }

  /** The request was sent, so its tokens count even if the answer is cut off. */
  requested(inputTokens: number): void {
    this.#inputTokens = inputTokens
    this.#requestedAt = performance.now()
  }

  /** How long the model has been thinking, from the request to its last thought. */
  get reasoningMs(): number {
    return Math.max(0, Math.round(this.#thoughtUntil - this.#requestedAt))
  }

  /** The model's reasoning so far, from its beginning. */
  get reasoning(): Reasoning | undefined {
    return this.#reasoning === '' ? undefined : { text: this.#reasoning, at: 0, ms: this.reasoningMs }
  }

  think(text: string): void {
    if (this.#isStored || this.#held !== undefined) return
    const at = this.#reasoning.length
    this.#reasoning += text
    this.#thoughtUntil = performance.now()
    this.#listener.reasoning({ text, at, ms: this.reasoningMs })
  }

  push(text: string): void {
    if (this.#isStored) return
    if (this.#held !== undefined) {
      this.#held += text
      return
    }
    this.#text += text
    this.#listener.text(text)
  }

  /** Publishes nothing more until `release`, so that pages show exactly what is stored. */
  hold(): void {
    this.#held ??= ''
  }

  release(): void {
    const held = this.#held ?? ''
    this.#held = undefined
    if (held !== '') this.push(held)
  }

  /** It is in the log, in full or in part. */
  stored(): void {
    this.#isStored = true
  }

  /** The events for the log if the step ends here. The tokens are estimated, because the provider reports them at the end only. */
  partial(reason: CutOffBy): NewEvent[] {
    const { turnId, key } = this
    const text = whole(this.#text)
    const reasoning = whole(this.#reasoning)
    const said = text + reasoning
    if (this.#isStored || this.#inputTokens === undefined || (said === '' && reason !== 'stopped')) return []
    const outputTokens = said === '' ? 0 : estimateTokens([{ role: 'user', text: said }])
    const tokens = { inputTokens: this.#inputTokens, outputTokens }
    const usage = { turnId, ...tokens, ...this.#listener.costOf(tokens) }
    const thought = reasoning === '' ? {} : { reasoning, reasoningMs: this.reasoningMs }
    const response: NewEvent = { type: 'agent:response', data: { turnId, text, ...thought, partial: reason }, key }
    return [...(said === '' ? [] : [response]), { type: 'usage', data: usage }]
  }
}

/** The other half of the last character may be in the next delta. */
function whole(text: string): string {
  return cutText(headOf(text, text.length).toWellFormed())
}

type Chunk = Omit<Parameters<ServerToClient['tool:output']>[0], 'callId' | 'at'>
type SoFar = Parameters<ServerToClient['tool:output_so_far']>[0]

const MAX_CHARS = 64 * 1024

/** The end of what the running calls have written, for clients that connect meanwhile. */
export class RunningOutputs {
  readonly #calls = new Map<string, { chunks: Chunk[]; written: number }>()

  /** Returns how many characters the call has written before. */
  push(callId: string, { stream, text }: Chunk): number {
    const call = this.#calls.get(callId) ?? { chunks: [], written: 0 }
    this.#calls.set(callId, call)
    const { chunks, written } = call
    call.written += text.length
    const last = chunks.at(-1)
    if (last?.stream === stream && last.text.length < MAX_CHARS) last.text += text
    else chunks.push({ stream, text })
    while (chunks.length > 1 && lengthOf(chunks.slice(1)) >= MAX_CHARS) chunks.shift()
    return written
  }

  end(callId: string): void {
    this.#calls.delete(callId)
  }

  all(): SoFar[] {
    return [...this.#calls].map(([callId, { chunks, written }]) => {
      const [first, ...rest] = chunks
      const room = Math.max(0, MAX_CHARS - lengthOf(rest))
      const kept = first && room > 0 ? [{ ...first, text: tailOf(first.text, room) }] : []
      const shown = [...kept, ...rest]
      return { callId, chunks: shown, at: written - lengthOf(shown) }
    })
  }
}

function lengthOf(chunks: Chunk[]): number {
  return chunks.reduce((sum, { text }) => sum + text.length, 0)
}
