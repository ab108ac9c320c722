import type { ChangeSummary } from '../../../contract/effects/change-set.ts'
import type { TranscriptEntry } from '../../../contract/transcript.ts'

type Entries = readonly TranscriptEntry[]
type Change = Pick<ChangeSummary, 'changeId' | 'total' | 'files'>
type Revert = Extract<TranscriptEntry, { kind: 'reverted' }>

/** Whether all files of a change were reverted, at once or one after the other. A revert that was reverted itself does not count. */
export function isReverted(entries: Entries, change: Change): boolean {
  const standing: Revert[] = []
  for (const entry of entries.toReversed())
    if (entry.kind === 'reverted' && !undo(entries, standing, entry.changes)) standing.push(entry)
  return undo(entries, standing, change)
}

/** Whether these reverts, taken together, undo the change. */
function undo(entries: Entries, reverts: readonly Revert[], { changeId, total, files }: Change): boolean {
  const place = placeOf(entries, changeId)
  const since = ({ of }: Revert) => of === changeId || (place >= 0 && isBefore(placeOf(entries, of), place))
  if (reverts.some((revert) => revert.scope === 'since' && since(revert))) return true
  const own = reverts.filter(({ scope, of }) => scope === 'one' && of === changeId)
  if (own.some(({ changes }) => changes.total >= total)) return true
  const back = new Set(own.flatMap(({ changes }) => changes.files.flatMap(({ path, from }) => [path, from ?? path])))
  return files.length === total && files.every(({ path }) => back.has(path))
}

/** Where in the conversation a version was made. Uploads have no entry of their own: -1. */
function placeOf(entries: Entries, changeId: string): number {
  return entries.findIndex((entry) => {
    if (entry.kind === 'call') return changeId === `call:${entry.callId}`
    if (entry.kind === 'review') return changeId === entry.applied?.changes?.changeId
    return entry.kind === 'reverted' && changeId === entry.changes.changeId
  })
}

function isBefore(place: number, other: number): boolean {
  return place >= 0 && place < other
}
