import type { EventData, SessionEvent } from '../../contract/events.ts'
import { plural } from '../lib/plural.ts'

const MAX_NAMED = 20

/**
 * Notes for the model about decided reviews, by the `seq` of the first message after each decision. If that message is taken back, the next
 * one tells it, unless what was reviewed is taken back too. Paths and comments are quoted.
 */
export function reviewNotes(events: readonly SessionEvent[]): Map<number, string> {
  let told: { seq: number; openedAt: number; note: string }[] = []
  let next: { openedAt: number; note: string }[] = []
  const openedAt = new Map<string, number>()
  for (const { type, seq, data } of events) {
    if (type === 'review:opened' && !openedAt.has(data.reviewId)) openedAt.set(data.reviewId, seq)
    if (type === 'review:resolved') {
      const applied = events.find((event) => event.type === 'review:applied' && event.data.reviewId === data.reviewId)
      const note = `[${noteOf(data, applied?.type === 'review:applied' ? applied.data : undefined)}]`
      next.push({ openedAt: openedAt.get(data.reviewId) ?? seq, note })
    }
    if (type === 'history:rewound') {
      next = [...told.filter((each) => each.seq >= data.from), ...next].filter((each) => each.openedAt < data.from)
      told = told.filter((each) => each.seq < data.from)
    }
    if (type !== 'user:message') continue
    told.push(...next.map((each) => ({ ...each, seq })))
    next = []
  }
  const notes = new Map<number, string>()
  for (const { seq, note } of told) notes.set(seq, [...(notes.has(seq) ? [notes.get(seq)] : []), note].join('\n'))
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
  const those = named.length > 0 ? `${named.join(', ')}${more}` : plural(rejectedTotal, 'file')
  return `The user reviewed your changes and did not accept those of ${those}: in the workspace, these are as they were before.${said}`
}
