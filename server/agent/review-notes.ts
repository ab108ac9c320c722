import type { EventData, SessionEvent } from '../../contract/events.ts'

const MAX_NAMED = 20

/** What the model is told about decided reviews, by the `seq` of the first message after each decision. Paths and comments are quoted. */
export function reviewNotes(events: readonly SessionEvent[]): Map<number, string> {
  const notes = new Map<number, string>()
  for (const { type, seq, data } of events) {
    if (type !== 'review:resolved') continue
    const message = events.find((event) => event.type === 'user:message' && event.seq > seq)
    const applied = events.find((event) => event.type === 'review:applied' && event.data.reviewId === data.reviewId)
    if (!message) continue
    const note = `[${noteOf(data, applied?.type === 'review:applied' ? applied.data : undefined)}]`
    const known = notes.get(message.seq)
    notes.set(message.seq, known === undefined ? note : `${known}\n${note}`)
  }
  return notes
}

function noteOf({ comment }: EventData<'review:resolved'>, applied: EventData<'review:applied'> | undefined): string {
  const said = comment ? ` The user's comment: ${JSON.stringify(comment)}` : ''
  if (applied?.problem !== undefined)
    return `The user reviewed your changes, but they could not be put into the workspace and wait for another review.${said}`
  const { rejected = [], rejectedTotal = 0 } = applied ?? {}
  if (rejectedTotal === 0) return `The user reviewed and accepted all your changes; they are in the workspace.${said}`
  const named = rejected.slice(0, MAX_NAMED).map((path) => JSON.stringify(path))
  const more = rejectedTotal > named.length ? ` and ${rejectedTotal - named.length} more` : ''
  return `The user reviewed your changes and did not accept those of ${named.join(', ')}${more}: in the workspace, these are as they were before.${said}`
}
