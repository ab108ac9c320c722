/** Says what becomes of the fork of a review when calls are taken back. */
import { callsOfProgram, isProgram } from '../programs.ts'
import { type CallEntry, callOf, type Transcript, type TranscriptEntry } from '../transcript.ts'

/** Whether the fork of a review has changes of calls that the person took back. */
export function hasTakenBack(transcript: Transcript): boolean {
  const { forkedTurn, review, rewoundTurns, entries } = transcript
  const turnId = forkedTurn ?? review?.turnId
  if (turnId === undefined || rewoundTurns === 0) return false
  return entries.some((entry) => {
    return (
      entry.rewound === true && callsOf(transcript, entry).some((call) => call.turnId === turnId && ranForReview(call))
    )
  })
}

/** Whether the model still has calls whose changes are in that fork: those of earlier turns, or of earlier steps. */
export function hasKeptBesides(transcript: Transcript): boolean {
  const { entries } = transcript
  const decided = entries.findLastIndex((entry) => entry.kind === 'review' && entry.decision !== undefined)
  return entries.slice(decided + 1).some((entry) => {
    return !entry.rewound && callsOf(transcript, entry).some(ranForReview)
  })
}

/** Whether going back to this entry discards what waits for a review, or will when the turn has ended. */
export function losesFork(transcript: Transcript, from: number): boolean {
  const { entries, review, forkedTurn } = transcript
  return entries.some((entry) => {
    if (entry.seq < from) return false
    if (entry.kind === 'review') return entry.reviewId === review?.reviewId
    return callsOf(transcript, entry).some((call) => call.turnId === forkedTurn && ranForReview(call))
  })
}

/** The call of an entry, and those that it made as a program. */
function callsOf(transcript: Transcript, entry: TranscriptEntry): CallEntry[] {
  const call = entry.kind === 'call' ? callOf(transcript, entry.callId) : undefined
  if (!call) return []
  return isProgram(call) ? [call, ...callsOfProgram(transcript.calls, call.callId)] : [call]
}

function ranForReview({ ahead, startedAt }: CallEntry): boolean {
  return ahead === 'review' && startedAt !== undefined
}
