/** Messages begin turns, and rewinds take turns back. Both take the number of the next turn, so only one of them counts. */
import type { CommandData } from '../../../contract/commands.ts'
import { undoableRewind } from '../../../contract/effects/taken-back.ts'
import type { EventData, SessionEvent } from '../../../contract/events.ts'
import type { Transcript } from '../../../contract/transcript.ts'
import { exchanged } from '../../agent/model-history.ts'
import { partsOf } from '../../agent/stored-parts.ts'
import { AppError } from '../../lib/errors.ts'
import type { ContentStore } from '../../storage/checkpoint-store.ts'
import type { NewEvent } from '../../storage/event-log.ts'
import { lookUpAttachments } from '../attachments/stored-file.ts'
import { reviewKey } from '../turns/turn-events.ts'

type Message = CommandData<'message'>
type MessageData = Omit<EventData<'user:message'>, 'turnId'>

/** Throws if one of its files is not stored in this session. */
export async function messageData(contents: ContentStore, sessionId: string, message: Message): Promise<MessageData> {
  const { text, id } = message
  const attachments = await lookUpAttachments(contents, sessionId, message.attachments ?? [])
  return { text, ...(id !== undefined && { id }), ...(attachments.length > 0 && { attachments }) }
}

export function messageEvent(number: number, message: MessageData) {
  return { type: 'user:message', data: { turnId: `t${number}`, ...message }, key: turnKey(number) }
}

export function turnKey(number: number): string {
  return `turn:${number}`
}

/** The turn that a message with this id began, if it was sent before. */
export function turnOfMessage({ entries }: Transcript, id: string | undefined): string | undefined {
  if (id === undefined) return undefined
  const entry = entries.findLast((candidate) => candidate.kind === 'user' && candidate.id === id)
  return entry?.kind === 'user' ? entry.turnId : undefined
}

/** The rewind, and the message that takes the place of what it takes back. */
export function rewinding(transcript: Transcript, from: number, message?: MessageData): NewEvent[] {
  const { turns } = transcript
  const rewound = { type: 'history:rewound', data: { from, by: 'human' }, key: turnKey(turns + 1) }
  const events = [...discardedReview(transcript, from), rewound]
  return message ? [...events, messageEvent(turns + 2, message)] : events
}

/** Brings back what the last rewind took back. Changes in a fork that it discarded stay discarded. */
export function restoring(transcript: Transcript, of: number): NewEvent {
  const { turns } = transcript
  if (transcript.turnId !== null) throw turnInProgress()
  if (undoableRewind(transcript)?.seq !== of) throw notRestorable()
  return { type: 'history:restored', data: { of, by: 'human' }, key: turnKey(turns + 1) }
}

export function notRestorable(): AppError {
  const message = 'This rewind can no longer be undone: the conversation has gone on since, or it was undone already.'
  return new AppError('conflict', 'not_restorable', message)
}

/** The format of the store in which logs can have `history:restored`. */
export const RESTORED_FORMAT = 2

export function olderInstances(): AppError {
  const message =
    'An older version of this server is still running beside this one. Try again when all of them are updated.'
  return new AppError('unavailable', 'older_instances', message)
}

/** An open review goes with the turns that it is about. If only later turns are taken back, it stays open. */
function discardedReview({ review, entries }: Transcript, from: number): NewEvent[] {
  if (!review) return []
  const { reviewId, changes } = review
  const opened = entries.findLast((entry) => entry.kind === 'review' && entry.reviewId === reviewId)
  if (!opened || opened.seq < from) return []
  const data = { reviewId, hash: changes.hash, accept: 'none', by: 'cancel' }
  return [{ type: 'review:resolved', data, key: reviewKey(reviewId, opened.seq) }]
}

/**
 * The first event to take back if the person points at the entry `from`. A step of the model is taken back as a whole, because its calls
 * belong to one answer. Throws if the model does not have the entry in its history any more.
 */
export function rewindStart(recent: readonly SessionEvent[], transcript: Transcript, from: number): number {
  const at = transcript.entries.findIndex(({ seq }) => seq === from)
  const entry = transcript.entries[at]
  if (entry?.kind !== 'user' && entry?.kind !== 'agent' && entry?.kind !== 'call')
    throw new AppError('not-found', 'not_rewindable', 'There is no message, answer or call to go back to there.')
  if (entry.rewound || entry.superseded)
    throw new AppError('conflict', 'not_rewindable', 'This was already taken back or replaced; look again.')
  if (transcript.entries.slice(at).some(({ kind }) => kind === 'fresh-start')) {
    const message = 'A fresh start came after this, so the model does not know it any more. Branch from there instead.'
    throw new AppError('conflict', 'not_rewindable', message)
  }
  if (entry.kind !== 'call') return from
  const asks = ({ data, type }: SessionEvent) =>
    type === 'agent:response' && partsOf(data).some((part) => part.type === 'tool-call' && part.callId === entry.callId)
  return exchanged(recent).find(asks)?.seq ?? from
}

export function nothingToRetry(): AppError {
  return new AppError('conflict', 'nothing_to_retry', 'There is no answer to retry; send a message.')
}

export function turnInProgress(): AppError {
  return new AppError('conflict', 'turn_in_progress', 'The last message is still in progress; wait for it, or stop it.')
}
