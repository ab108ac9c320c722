/**
 * Local models write their thoughts between `<think>` and `</think>` at the start of the answer. This makes reasoning parts of them,
 * however the server cuts the text into pieces. A tag anywhere else belongs to the answer.
 */
import type { LanguageModelV4StreamPart } from '@ai-sdk/provider'
import type { AssistantPart } from '../port.ts'

const OPENING = ['<think>', '<thinking>']
/** Says that a thought came in tags, so that it is not sent back in another form. */
const TAGGED = { tags: { name: 'think' } }
const THOUGHT_ID = 'think-tags'
/** A closing tag on a line of its own without an opening one: some model servers put the opening tag into the prompt. */
const UNOPENED = /^([\s\S]*\n)<\/think(?:ing)?>[^\S\n]*\n\s*/

type Piece = { type: 'text' | 'reasoning'; text: string }

export function isTagged(part: AssistantPart): boolean {
  return part.type === 'reasoning' && part.meta?.tags !== undefined
}

/** Tells the thought from the answer at the end of the stream, if only its closing tag was there. */
export function foldUnopened(parts: AssistantPart[]): AssistantPart[] {
  const [first, ...rest] = parts
  if (first?.type !== 'text' || first.meta !== undefined) return parts
  const found = UNOPENED.exec(first.text)
  const thought = found?.[1]
  if (!found || thought === undefined || thought.includes('```')) return parts
  const answer: AssistantPart = { type: 'text', text: first.text.slice(found[0].length) }
  return [{ type: 'reasoning', text: thought.trim(), meta: TAGGED }, answer, ...rest]
}

type StreamPart = LanguageModelV4StreamPart
type TextStart = Extract<StreamPart, { type: 'text-start' }>

export function splitThinkTags(): TransformStream<StreamPart, StreamPart> {
  const splitter = new ThinkSplitter()
  /** Held, because the thought comes first. */
  let textStart: TextStart | undefined
  let isThinking = false
  return new TransformStream({
    transform(part, controller) {
      if (part.type === 'text-start') textStart = part
      else if (part.type === 'text-delta') give(splitter.push(part.delta), part.id)
      else if (part.type === 'text-end') give(splitter.end(), part.id)
      if (part.type !== 'text-start' && part.type !== 'text-delta') controller.enqueue(part)

      function give(pieces: Piece[], textId: string): void {
        for (const { type, text } of pieces) {
          if (type === 'reasoning' && !isThinking)
            controller.enqueue({ type: 'reasoning-start', id: THOUGHT_ID, providerMetadata: TAGGED })
          if (type === 'reasoning') isThinking = true
          else if (textStart) controller.enqueue(textStart)
          if (type === 'text') textStart = undefined
          controller.enqueue({ type: `${type}-delta`, id: type === 'text' ? textId : THOUGHT_ID, delta: text })
        }
      }
    }
  })
}

class ThinkSplitter {
  #state: 'start' | 'thought' | 'gap' | 'answer' = 'start'
  /** Characters that may be the beginning of a tag, or white space that may stand around one. */
  #held = ''
  #closing = ''
  #hasThought = false

  push(text: string): Piece[] {
    this.#held += text
    const pieces: Piece[] = []
    for (let before = ''; before !== this.#state; ) {
      before = this.#state
      if (this.#state === 'start') this.#readStart()
      else if (this.#state === 'thought') pieces.push(...this.#readThought())
      else pieces.push(...this.#readAnswer())
    }
    return pieces
  }

  end(): Piece[] {
    const text = this.#held
    this.#held = ''
    if (text === '' || this.#state === 'gap') return []
    return [{ type: this.#state === 'thought' ? 'reasoning' : 'text', text }]
  }

  #readStart(): void {
    const text = this.#held.trimStart()
    const tag = OPENING.find((each) => text.startsWith(each))
    if (tag !== undefined) {
      this.#state = 'thought'
      this.#closing = `</${tag.slice(1)}`
      this.#held = text.slice(tag.length)
    } else if (!OPENING.some((each) => each.startsWith(text))) this.#state = 'answer'
  }

  #readThought(): Piece[] {
    if (!this.#hasThought) this.#held = this.#held.trimStart()
    const at = this.#held.indexOf(this.#closing)
    const end = at >= 0 ? at : this.#held.length - startOf(this.#closing, this.#held)
    // White space at the end is held: it may stand before the closing tag.
    const thought = this.#held.slice(0, end).trimEnd()
    this.#held = this.#held.slice(at >= 0 ? at + this.#closing.length : thought.length)
    if (at >= 0) this.#state = 'gap'
    if (thought === '') return []
    this.#hasThought = true
    return [{ type: 'reasoning', text: thought }]
  }

  #readAnswer(): Piece[] {
    const text = this.#state === 'gap' ? this.#held.trimStart() : this.#held
    this.#held = ''
    if (text === '') return []
    this.#state = 'answer'
    return [{ type: 'text', text }]
  }
}

/** How many characters at the end of the text may be the beginning of the tag. */
function startOf(tag: string, text: string): number {
  for (let length = Math.min(tag.length - 1, text.length); length > 0; length--)
    if (text.endsWith(tag.slice(0, length))) return length
  return 0
}
