/**
 * When the conversation continues with another model, what the earlier one said is carried over: its texts and calls, in a form that
 * every vendor accepts. What only the earlier model understands is left out: its thoughts, signatures and ids.
 */
import { createHash } from 'node:crypto'
import type { SessionEvent } from '../../contract/events.ts'
import type { AssistantPart } from '../models/port.ts'

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** Mistral accepts exactly nine letters or digits; the others accept these too. */
const ID_LENGTH = 9

/** Returns which answers are from a model before the last switch. */
export function foreignAnswers(events: readonly SessionEvent[]): (answer: { seq: number; turnId: string }) => boolean {
  const switchedAt = events.findLast(({ type }) => type === 'model:selected')?.seq ?? 0
  const begun = new Map<string, number>()
  for (const { type, seq, data } of events)
    if (type === 'user:message' || type === 'turn:reopened') begun.set(data.turnId, seq)
  // An answer of a turn that the switch stopped may be stored later.
  return ({ seq, turnId }) => Math.min(seq, begun.get(turnId) ?? seq) < switchedAt
}

export function carriedOver(parts: AssistantPart[]): AssistantPart[] {
  return parts.flatMap((part): AssistantPart[] => {
    const { meta: _, ...own } = part
    return own.type === 'reasoning' || (own.type === 'text' && own.text === '') ? [] : [own]
  })
}

/** A call and its answer get the same new id. */
export function withPortableId<T extends object>(item: T): T {
  return 'callId' in item ? { ...item, callId: portableId(String(item.callId)) } : item
}

function portableId(callId: string): string {
  const digest = createHash('sha256').update(callId).digest()
  return [...digest.subarray(0, ID_LENGTH)].map((byte) => DIGITS[byte % DIGITS.length]).join('')
}
