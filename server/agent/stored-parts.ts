import type { EventData, SessionEvent } from '../../contract/events.ts'
import type { AssistantPart } from '../models/port.ts'

type TextPart = Extract<AssistantPart, { text: string }>
type Stored = Pick<EventData<'agent:response'>, 'text' | 'reasoning' | 'parts'>
/**
 * In the log, a part has only the length of its text: the texts of all parts together are the event's `text` or `reasoning`, which is
 * stored once.
 */
type StoredPart = Exclude<AssistantPart, TextPart> | (Omit<TextPart, 'text'> & { chars: number }) | TextPart

/** Between two thoughts. */
const GAP = '\n\n'

export function toStored(parts: AssistantPart[]): Stored {
  const texts = (type: TextPart['type']) =>
    parts.flatMap((part) => (part.type === type && part.text !== '' ? [part.text] : []))
  const reasoning = texts('reasoning').join(GAP)
  return { text: texts('text').join(''), ...(reasoning !== '' && { reasoning }), parts: parts.map(toStoredPart) }
}

function toStoredPart(part: AssistantPart): StoredPart {
  if (part.type === 'tool-call') return part
  const { text, ...rest } = part
  return { ...rest, chars: text.length }
}

/** We wrote the log ourselves, so it is as trustworthy as the process. Earlier versions stored the text in the part too. */
export function partsOf({ text, reasoning = '', parts }: Stored): AssistantPart[] {
  if (!parts) return text === '' ? [] : [{ type: 'text', text }]
  const at = { text: 0, reasoning: 0 }
  return (parts as StoredPart[]).map((part) => {
    if (part.type === 'tool-call' || !('chars' in part)) return part
    const { chars, ...rest } = part
    const from = at[part.type]
    if (chars > 0) at[part.type] += chars + (part.type === 'reasoning' ? GAP.length : 0)
    return { ...rest, text: (part.type === 'text' ? text : reasoning).slice(from, from + chars) }
  })
}

/** The ids of a step's calls, including those that can't be run and are not in the transcript. */
export function requestedIds({ type, data }: SessionEvent): string[] {
  if (type !== 'agent:response') return []
  return partsOf(data).flatMap((part) => (part.type === 'tool-call' ? [part.callId] : []))
}
