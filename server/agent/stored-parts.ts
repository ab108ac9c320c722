import type { EventData } from '../../contract/events.ts'
import type { AssistantPart } from '../models/port.ts'

type TextPart = Extract<AssistantPart, { type: 'text' }>
/** In the log, a text part has only its length: the texts of all parts together are the event's `text`, which is stored once. */
type StoredPart = Exclude<AssistantPart, TextPart> | (Omit<TextPart, 'text'> & { chars: number }) | TextPart

export function toStoredPart(part: AssistantPart): StoredPart {
  if (part.type !== 'text') return part
  const { text, ...rest } = part
  return { ...rest, chars: text.length }
}

/** We wrote the log ourselves, so it is as trustworthy as the process. Earlier versions stored the text in the part too. */
export function partsOf({ text, parts }: Pick<EventData<'agent:response'>, 'text' | 'parts'>): AssistantPart[] {
  if (!parts) return text === '' ? [] : [{ type: 'text', text }]
  let at = 0
  return (parts as StoredPart[]).map((part) => {
    if (part.type !== 'text' || !('chars' in part)) return part
    const { chars, ...rest } = part
    at += chars
    return { ...rest, text: text.slice(at - chars, at) }
  })
}
