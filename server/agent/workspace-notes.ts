/**
 * Notes about the workspace that the model gets with the person's next message: changes that the person made, and, after a rewind, what the
 * calls that were taken back have left behind. If a message with such a note is taken back, the one that follows tells it again.
 */
import type { ChangedFile, ChangeSummary } from '../../contract/effects/change-set.ts'
import type { EventData, SessionEvent } from '../../contract/events.ts'
import { type FileChange, filesChangedNote } from '../../contract/file-changes.ts'

const MAX_NAMED = 30
const MAX_PATH_CHARS = 200

/** A change of the workspace that the model knows about: made by one of its calls, or by a review of them. */
interface Claim {
  seq: number
  changeId: string
  paths: string[]
  /** Files beyond those that the event lists. */
  others: number
  /** For a review: the `seq` at which each path was first and last listed with something new. Earlier turns may have made a part of it. */
  made?: Made | undefined
}
type Made = Map<string, { first: number; last: number; after: string }>

/** A change by the person. `undoes`: the seq since which the model knows of the change that it reverts, if that is known. */
interface Told {
  change: FileChange
  undoes?: number | undefined
}
interface Notes {
  changes: Told[]
  left: Claim[]
}

/** The notes of one message. Until the model has answered it, later notes are added to it. */
interface Message extends Notes {
  seq: number
  turnId: string
}

/** By the `seq` of the message that tells it. `askedAt`: the `seq` at which the model asked for a call. */
export function workspaceNotes(
  events: readonly SessionEvent[],
  askedAt: (callId: string) => number | undefined = () => undefined
): Map<number, string> {
  let told: Message[] = []
  let unanswered: Message | undefined
  let claims: Claim[] = []
  let next: Notes = { changes: [], left: [] }
  const reviews = new Map<string, Made>()
  const rewinds: { from: number; at: number }[] = []
  const isTakenBack = (seq: number) => rewinds.some(({ from, at }) => seq >= from && seq < at)
  for (const { type, seq, data } of events) {
    if (type === 'session:notice') next.changes.push(...(data.files ?? []).map((change) => ({ change })))
    if (type === 'review:opened') reviews.set(data.reviewId, madeIn(data.changes, seq, reviews.get(data.reviewId)))
    const claim = claimIn({ type, seq, data } as SessionEvent, askedAt, reviews)
    if (claim) {
      const { known, left } = split(claim, isTakenBack)
      claims.push(...known)
      const { left: untold } = unanswered ?? next
      untold.push(...left)
    }
    if (type === 'files:reverted') {
      const reverted = claims.find(({ changeId }) => changeId === data.of)
      const undone = claims.filter((claim) => isUndone(claim, data, reverted))
      claims = claims.flatMap((claim) => (undone.includes(claim) ? without(claim, data.changes.files) : [claim]))
      next.left = next.left.flatMap((claim) => without(claim, data.changes.files))
      next.changes.push(
        ...data.changes.files.map((file) => ({ change: revertedFile(file), undoes: knownSince(file, undone) }))
      )
    }
    if (type === 'history:rewound') {
      rewinds.push({ from: data.from, at: seq })
      const again = told.filter((each) => each.seq >= data.from)
      told = told.filter((each) => each.seq < data.from)
      unanswered = undefined
      // The model no longer knows of the change, so undoing it is no news.
      const changes = [...again.flatMap((each) => each.changes), ...next.changes].filter(
        ({ undoes }) => undoes === undefined || undoes < data.from
      )
      const left = [
        ...again.flatMap((each) => each.left),
        ...next.left,
        ...claims.filter((claim) => claim.seq >= data.from).flatMap((claim) => madeSince(claim, data.from))
      ]
      next = { changes, left }
      claims = claims.filter((claim) => claim.seq < data.from)
    }
    if (type === 'agent:response' && data.turnId === unanswered?.turnId) unanswered = undefined
    if (type !== 'user:message') continue
    unanswered = { seq, turnId: data.turnId, ...next }
    told.push(unanswered)
    next = { changes: [], left: [] }
  }
  const full = told.filter(({ changes, left }) => changes.length + left.length > 0)
  return new Map(full.map((each) => [each.seq, noteOf(each)]))
}

/** The changes that an event reports. The model knows of a call since it asked for it. */
function claimIn(
  { type, seq, data }: SessionEvent,
  askedAt: (callId: string) => number | undefined,
  reviews: ReadonlyMap<string, Made>
): Claim | undefined {
  if (type === 'tool:result' && !data.isForked && data.changes)
    return claimOf(data.changes, askedAt(data.callId) ?? seq)
  if (type !== 'review:applied' || !data.changes) return undefined
  return { ...claimOf(data.changes, seq), made: reviews.get(data.reviewId) }
}

/** Changes of a call that was kept, or still ran, when it was taken back may come into the workspace after that. */
function split(claim: Claim, isTakenBack: (seq: number) => boolean): { known: Claim[]; left: Claim[] } {
  const isGone = (path: string) => isTakenBack(claim.made?.get(path)?.last ?? claim.seq)
  const gone = claim.paths.filter(isGone)
  if (gone.length === 0) return { known: [claim], left: [] }
  const paths = claim.paths.filter((path) => !isGone(path))
  const known = paths.length > 0 ? [{ ...claim, paths, others: 0 }] : []
  return { known, left: [{ ...claim, paths: gone }] }
}

function claimOf({ changeId, total, files }: ChangeSummary, seq: number): Claim {
  const paths = files.flatMap(({ path, from }) => (from === undefined ? [path] : [path, from]))
  return { seq, changeId, paths, others: Math.max(0, total - files.length) }
}

function madeIn({ files }: ChangeSummary, seq: number, before: Made = new Map()): Made {
  return new Map(
    files.map((file) => {
      const after = JSON.stringify(file.after ?? null)
      const known = before.get(file.path)
      if (!known) return [file.path, { first: seq, last: seq, after }]
      return [file.path, known.after === after ? known : { ...known, last: seq, after }]
    })
  )
}

/** The `seq` since which the model knows of the file that was put back. */
function knownSince({ path }: ChangedFile, undone: readonly Claim[]): number | undefined {
  const known = undone.filter(({ paths }) => paths.includes(path)).map(({ seq, made }) => made?.get(path)?.first ?? seq)
  return known.length === 0 ? undefined : Math.min(...known)
}

/** The part of a claim about changes from this event on. */
function madeSince(claim: Claim, from: number): Claim[] {
  const paths = claim.paths.filter((path) => (claim.made?.get(path)?.last ?? claim.seq) >= from)
  return paths.length + claim.others === 0 ? [] : [{ ...claim, paths }]
}

/** A revert of one change undoes that one; a revert `since` a change undoes all later ones too. */
function isUndone(claim: Claim, { of, scope }: EventData<'files:reverted'>, reverted: Claim | undefined): boolean {
  return claim.changeId === of || (scope === 'since' && reverted !== undefined && claim.seq >= reverted.seq)
}

function without(claim: Claim, files: readonly ChangedFile[]): Claim[] {
  const back = new Set(files.flatMap(({ path, from }) => [path, from]))
  const paths = claim.paths.filter((path) => !back.has(path))
  return paths.length + claim.others === 0 ? [] : [{ ...claim, paths }]
}

/** Leaves out files that are back, also renamed ones that are back at their old path. */
function revertedFile({ path, from }: ChangedFile): FileChange {
  return from === undefined ? { action: 'reverted', path } : { action: 'moved', path: from, to: path }
}

function noteOf({ changes, left }: Notes): string {
  const notes = changes.length === 0 ? [] : [filesChangedNote(changes.map(({ change }) => change))]
  if (left.length > 0) notes.push(leftNote(left))
  return notes.join('\n')
}

/** A file name is hostile text, so each is quoted. */
function leftNote(left: readonly Claim[]): string {
  const paths = [...new Set(left.flatMap((claim) => claim.paths))]
  const named = paths.slice(0, MAX_NAMED).map((path) => JSON.stringify(path.slice(0, MAX_PATH_CHARS).toWellFormed()))
  const others = paths.length - named.length + left.reduce((sum, claim) => sum + claim.others, 0)
  const more = others > 0 ? ` and ${others} more` : ''
  return `[The user took back a later part of this conversation, which you don't see. What its calls changed in the workspace is still there: ${named.join(', ')}${more}. Look at a file before you rely on it.]`
}
