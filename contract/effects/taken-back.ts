/** Says what becomes of the fork of a review when calls are taken back. */
import { callsOfEntry } from '../programs.ts'
import type { CallEntry, Transcript } from '../transcript.ts'
import type { EffectEntry } from './effect-entries.ts'

/** The rewind that can be undone: the last one, while nothing has been said since. Undefined if there is none. */
export function undoableRewind({ entries, turnId, forkedTurn }: Transcript): Rewind | undefined {
  if (turnId !== null || forkedTurn !== null) return undefined
  const at = entries.findLastIndex((entry) => entry.kind === 'rewound' && !entry.undone)
  const since = entries
    .slice(at + 1)
    .some(({ kind, rewound }) => kind === 'fresh-start' || (kind === 'user' && !rewound))
  const entry = entries[at]
  return entry?.kind === 'rewound' && !since ? entry : undefined
}
type Rewind = Extract<EffectEntry, { kind: 'rewound' }>

/** Whether the fork of a review has changes of calls that the person took back. */
export function hasTakenBack(transcript: Transcript): boolean {
  const { forkedTurn, review, rewoundTurns, entries } = transcript
  const turnId = forkedTurn ?? review?.turnId
  if (turnId === undefined || rewoundTurns === 0) return false
  return entries.some((entry) => {
    return (
      entry.rewound === true &&
      callsOfEntry(transcript.calls, entry).some((call) => call.turnId === turnId && ranForReview(call))
    )
  })
}

/** Whether the model still has calls whose changes are in that fork: those of earlier turns, or of earlier steps. */
export function hasKeptBesides(transcript: Transcript): boolean {
  const { entries } = transcript
  const decided = entries.findLastIndex((entry) => entry.kind === 'review' && entry.decision !== undefined)
  return entries.slice(decided + 1).some((entry) => {
    return !entry.rewound && callsOfEntry(transcript.calls, entry).some(ranForReview)
  })
}

/** Whether going back to this entry discards what waits for a review, or will when the turn has ended. */
export function losesFork(transcript: Transcript, from: number): boolean {
  const { entries, review, forkedTurn } = transcript
  return entries.some((entry) => {
    if (entry.seq < from) return false
    if (entry.kind === 'review') return entry.reviewId === review?.reviewId
    return callsOfEntry(transcript.calls, entry).some((call) => call.turnId === forkedTurn && ranForReview(call))
  })
}

function ranForReview({ ahead, startedAt }: CallEntry): boolean {
  return ahead === 'review' && startedAt !== undefined
}
