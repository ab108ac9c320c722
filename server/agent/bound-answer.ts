import { headOf } from '../lib/cut-text.ts'
import type { AssistantPart } from '../models/port.ts'

/** Far above what models write in one step, and below what the event log takes. */
const MAX_TEXT_CHARS = 2_000_000
const MAX_ARGS_BYTES = 8 * 1024 * 1024

export function cutText(text: string): string {
  if (text.length <= MAX_TEXT_CHARS) return text
  const note = `[This was cut here: it had ${text.length} characters, and the limit is ${MAX_TEXT_CHARS}.]`
  return `${headOf(text, MAX_TEXT_CHARS - note.length - 2)}\n\n${note}`
}

/**
 * The parts of a step that can be stored. A text that is too long is cut, and says so. Arguments can't be cut, so a call whose
 * arguments don't fit is marked as unusable, and the model is told. Too much reasoning is left out: a part of it would not match its
 * signature.
 */
export function boundAnswer(parts: AssistantPart[]): AssistantPart[] {
  let textRoom = MAX_TEXT_CHARS
  let reasoningRoom = MAX_TEXT_CHARS
  let argsRoom = MAX_ARGS_BYTES
  return parts.flatMap((part): AssistantPart[] => {
    if (part.type === 'reasoning') {
      reasoningRoom -= part.text.length
      return reasoningRoom < 0 ? [] : [part]
    }
    if (part.type === 'text') {
      const isCut = part.text.length > textRoom
      const text = textRoom === MAX_TEXT_CHARS ? cutText(part.text) : isCut ? '' : part.text
      textRoom -= Math.min(textRoom, part.text.length)
      return [{ ...part, text }]
    }
    const bytes = Buffer.byteLength(part.args)
    if (bytes <= argsRoom) {
      argsRoom -= bytes
      return [part]
    }
    const invalid = `The arguments have ${bytes} bytes, which is more than can be stored for one step (${MAX_ARGS_BYTES}). Use several smaller calls.`
    return [{ ...part, args: '{}', invalid }]
  })
}
