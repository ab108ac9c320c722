import {
  type ChangedFile,
  type ChangeSummary,
  type FileSide,
  isChosen,
  PART
} from '../../../contract/effects/change-set.ts'
import { callsOfEntry } from '../../../contract/programs.ts'
import type { Transcript } from '../../../contract/transcript.ts'
import { isReverted } from './reverted-changes.ts'

export type ReviewState = 'running' | 'waiting' | 'accepted' | 'part' | 'rejected' | 'undone'

export interface ForkedCall {
  state: ReviewState
  /** Files of the fork that this call changed; null if the events don't list all of them. */
  files: ChangedFile[] | null
}

type Conversation = Pick<Transcript, 'entries' | 'calls'>

/** The calls, and the programs with such calls, that ran in the fork since the last review. */
export function forkedCallIds({ entries, calls }: Conversation): string[] {
  const last = entries.findLastIndex((entry) => entry.kind === 'review' && entry.decision !== undefined)
  return entries.slice(last + 1).flatMap((entry) => {
    const isForked = callsOfEntry(calls, entry).some(({ result }) => result?.isForked)
    return entry.kind === 'call' && isForked ? [entry.callId] : []
  })
}

/** The changes of a call in a reviewed turn, and the decision on them. A result has all changes of its fork until then. */
export function forkedCall({ entries, calls }: Conversation, callId: string): ForkedCall {
  const shownWith = calls[callId]?.program?.callId ?? callId
  const at = entries.findIndex((entry) => entry.kind === 'call' && entry.callId === shownWith)
  const review = entries.slice(at).find((entry) => entry.kind === 'review')
  const start = entries.slice(0, at).findLastIndex((entry) => entry.kind === 'review' && entry.decision) + 1
  const ran = entries.slice(start, at + 1).flatMap((entry) => callsOfEntry(calls, entry))
  const earlier = ran.slice(
    0,
    ran.findIndex((call) => call.callId === callId)
  )
  const before = earlier.findLast(({ result }) => result?.isForked)?.result?.changes
  const files = ownFiles(before, calls[callId]?.result?.changes)
  if (review?.kind !== 'review') return { state: 'running', files }
  const { decision, applied } = review
  if (!decision) return { state: 'waiting', files }
  if (decision.by === 'cancel' || decision.accept === 'none' || applied?.problem) return { state: 'rejected', files }
  const { accept, choices = {} } = decision
  const isAccepted = isChosen(accept)
  const isIn = (path: string) => choices[path] !== 'workspace' && isAccepted(path)
  const shown = files ?? review.changes.files
  const taken = shown.filter(({ path }) => isIn(path))
  const part = { changeId: `${PART}${callId}`, total: files ? taken.length : Number.POSITIVE_INFINITY, files: taken }
  if (taken.length > 0 && (review.undone || isReverted(entries, part))) return { state: 'undone', files }
  const some = taken.length > 0 ? 'part' : 'rejected'
  return { state: taken.length === shown.length ? 'accepted' : some, files }
}

/** The id of what a call changed in the workspace, if that can still be undone: its version, or its part of an accepted review. */
export function undoableChange(transcript: Conversation, callId: string): string | undefined {
  const { changes, isForked } = transcript.calls[callId]?.result ?? {}
  if (!isForked) return changes?.total && !isReverted(transcript.entries, changes) ? changes.changeId : undefined
  const { state, files } = forkedCall(transcript, callId)
  const isIn = state === 'accepted' || state === 'part'
  return isIn && files?.length !== 0 ? `${PART}${callId}` : undefined
}

function ownFiles(before: ChangeSummary | undefined, after: ChangeSummary | undefined): ChangedFile[] | null {
  if ([before, after].some((each) => each && each.files.length < each.total)) return null
  const known = new Map(before?.files.map((file) => [file.path, file]))
  const changed = (after?.files ?? []).filter((file) => {
    const earlier = known.get(file.path)
    known.delete(file.path)
    return !earlier || sideKey(earlier.after) !== sideKey(file.after) || earlier.from !== file.from
  })
  // Files that are no longer listed are as they were before the turn: this call has restored them.
  return [...changed, ...[...known.values()].map(putBack)]
}

function putBack({ path, before, after }: ChangedFile): ChangedFile {
  return { path, ...(after && { before: after }), ...(before && { after: before }) }
}

function sideKey(side: FileSide | undefined): string {
  return side ? JSON.stringify(side.type === 'file' ? [side.mode, side.hash] : side) : ''
}
