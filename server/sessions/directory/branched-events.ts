/**
 * The events of a conversation for a branch of it: the same history in a log of its own. Nothing in it waits or can still run, and no
 * permission and no token count is taken over. Events that name others by their `seq` name the copies.
 */
import type { ChangeSummary } from '../../../contract/effects/change-set.ts'
import type { OpenReview } from '../../../contract/effects/effect-entries.ts'
import { EVENT_SCHEMAS } from '../../../contract/events.ts'
import { isFileBlock } from '../../../contract/stored-files.ts'
import { applyEvent, type CallEntry, emptyTranscript, undecidedCalls } from '../../../contract/transcript.ts'
import type { NewEvent, StoredEvent } from '../../storage/event-log.ts'
import { asSessionEvent } from '../feed/conversation.ts'
import { resultOf } from '../sandboxes/session-events.ts'
import { endOf, noticeOf } from '../turns/turn-events.ts'

const LEFT_OUT = new Set(['usage', 'tool:allowed', 'tool:allow_revoked', 'limit:raised'])
const BRANCHED = 'The conversation was branched here.'
const NOT_ENDED = 'This call had not ended when the conversation was branched.'

export class BranchedEvents {
  readonly #transcript = emptyTranscript()
  /** The new position of each event; an event that was left out leads to the one that follows. */
  readonly #seqs = new Map<number, number>()
  /** The changes in the fork after the last call in it. */
  #forked: ChangeSummary | undefined

  /** The copy of one event; call it for all of them in order. */
  take({ type, seq, data }: StoredEvent): NewEvent[] {
    this.#seqs.set(seq, this.#transcript.seq + 1)
    if (type === 'tool:result' && data.isForked && data.changes) this.#forked = data.changes as ChangeSummary
    if (LEFT_OUT.has(type) || !(type in EVENT_SCHEMAS)) return []
    return [this.#add({ type, data: this.#moved(type, data) })]
  }

  /** The events that end the copied history: open calls are cancelled, and the turn ends. */
  end(from: string): NewEvent[] {
    const transcript = this.#transcript
    const { turnId } = transcript
    const cancelled = { approved: false, by: 'cancel', reason: BRANCHED }
    const events: NewEvent[] = undecidedCalls(transcript).map(({ callId }) => ({
      type: 'tool:approval_resolved',
      data: { callId, ...cancelled }
    }))
    for (const { callId } of Object.values(transcript.calls).filter(isUnfinished))
      events.push(resultOf(callId, { isError: true, content: [{ type: 'text', text: NOT_ENDED }] }))
    const open = this.#openChanges()
    if (open) {
      const { reviewId, changes } = open
      events.push({ type: 'review:opened', data: { ...open } })
      events.push({ type: 'review:resolved', data: { reviewId, hash: changes.hash, accept: 'none', by: 'cancel' } })
    }
    if (turnId !== null) events.push(endOf(turnId, 'cancelled'))
    const notice = `This is a branch of “${from}”. What is above happened there and does not happen again.`
    return [...events, noticeOf('branched', notice)]
  }

  /** The changes that wait for a review, or would have when the turn ends. They stay in the old session. */
  #openChanges(): OpenReview | undefined {
    const { review, forkedTurn } = this.#transcript
    if (forkedTurn === null || !this.#forked) return review ?? undefined
    const reviewId = this.#forked.changeId.replace(/^review:/, '')
    return { reviewId, turnId: forkedTurn, changes: this.#forked }
  }

  #moved(type: string, data: Record<string, unknown>): Record<string, unknown> {
    if (type === 'turn:reopened' || type === 'history:rewound')
      return { ...data, from: this.#seqs.get(Number(data.from)) ?? 1 }
    if (type === 'history:restored') return { ...data, of: this.#seqs.get(Number(data.of)) ?? 1 }
    if (type === 'tool:previewed') return withoutOutput(data)
    // The branch has its own versions of the files, so it can't undo those of the other session.
    const { changes: _, ...result } = data
    return type === 'tool:result' ? result : data
  }

  #add(event: NewEvent): NewEvent {
    const { type, data } = event
    // Results can be large, and only their presence counts here.
    const light = 'content' in data ? { ...data, content: [] } : data
    const known = asSessionEvent({ type, data: light, seq: this.#transcript.seq + 1, at: 0 })
    if (known) applyEvent(this.#transcript, known)
    return event
  }
}

/** That it ran in a fork is part of the history. Its output and its files are not: if they were kept, they are in its result. */
function withoutOutput(data: Record<string, unknown>): Record<string, unknown> {
  const { callId, hash } = data
  const changes = { changeId: `call:${callId}`, hash: 'none', total: 0, files: [] }
  return { callId, hash, changes, result: { isError: false, content: [] } }
}

function isUnfinished({ decision, result }: CallEntry): boolean {
  return decision?.approved === true && !result
}

/** The ids of the files that an event names: attachments of a message, and images in the result of a call. */
export function filesNamed({ type, data }: Pick<StoredEvent, 'type' | 'data'>): string[] {
  if (type === 'user:message') {
    const attachments = (data.attachments ?? []) as { id: string; view?: { id: string } }[]
    return attachments.flatMap(({ id, view }) => (view ? [id, view.id] : [id]))
  }
  const content = type === 'tool:result' ? data.content : undefined
  return Array.isArray(content) ? content.filter(isFileBlock).map(({ file }) => file.id) : []
}
