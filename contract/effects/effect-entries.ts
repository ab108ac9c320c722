/** Applies the events of approval modes, reviews, reverts and rewinds to the transcript. */
import type { CallEntry } from '../call-entry.ts'
import type { EventData, SessionEvent } from '../events.ts'
import type { ChangeSummary } from './change-set.ts'
import type { ApprovalMode } from './modes.ts'

export interface OpenReview {
  reviewId: string
  turnId: string
  changes: ChangeSummary
}

export type EffectEntry =
  /** A review: open until it has a decision, and done when that is applied. Only its last position is shown. */
  | {
      kind: 'review'
      seq: number
      at: number
      reviewId: string
      changes: ChangeSummary
      decision?: Omit<EventData<'review:resolved'>, 'reviewId'>
      applied?: Omit<EventData<'review:applied'>, 'reviewId'>
      /** The person has reverted what was accepted. */
      undone?: true
    }
  | ({ kind: 'reverted'; seq: number; at: number } & EventData<'files:reverted'>)
  /** `turn` is the number that the rewind took; `undone`: the person has undone it. */
  | { kind: 'rewound'; seq: number; at: number; from: number; turn: number; undone?: true }

/** Describes the entry in one sentence. */
export function effectText(entry: EffectEntry): string {
  if (entry.kind === 'rewound')
    return `The conversation was taken back to an earlier message.${entry.undone ? ' You undid that; it changed no files.' : ''}`
  const { total } = entry.changes
  const files = total === 1 ? '1 file' : `${total} files`
  if (entry.kind === 'reverted') return `You reverted ${files} in the workspace.`
  const { decision, applied } = entry
  if (!decision) return `${files} changed in the fork wait for your review.`
  if (decision.by === 'cancel' || decision.accept === 'none') return `The changes of ${files} were discarded.`
  const accepted = Math.max(0, total - (applied?.rejectedTotal ?? 0))
  const undone = entry.undone ? ' Then you undid these changes.' : ''
  if (!applied) return `You reviewed ${files}.`
  return `You reviewed ${files} and accepted ${accepted === total ? 'all' : accepted || 'none'}.${undone}`
}

type ReviewEntry = Extract<EffectEntry, { kind: 'review' }>
type NoticeEntry = { kind: 'notice'; seq: number; at: number; code: string; message: string }
interface AnyEntry {
  kind: string
  seq: number
  at: number
  code?: string
  callId?: string
  rewound?: true
  undone?: true
}

/** The parts of a transcript that these events change. */
interface Folded {
  entries: AnyEntry[]
  turns: number
  rewoundTurns: number
  contextTokens: number
  mode: ApprovalMode
  review: OpenReview | null
  forkedTurn: string | null
  unapplied: string | null
  lastTurnEnd: unknown
}

const MODE_NAMES: Record<ApprovalMode, string> = { ask: 'Ask', preview: 'Preview', review: 'Review' }

export function applyEffect(transcript: Folded, event: SessionEvent): void {
  const { seq, at } = event
  switch (event.type) {
    case 'mode:selected':
      selectMode(transcript, event.data.mode, seq, at)
      break
    case 'review:opened':
      openReview(transcript, event.data, seq, at)
      break
    case 'review:resolved':
      resolveReview(transcript, event.data)
      break
    case 'review:applied':
      if (transcript.unapplied === event.data.reviewId) transcript.unapplied = null
      updateReview(transcript, event.data.reviewId, (entry) => ({ ...entry, applied: without(event.data) }))
      break
    case 'files:reverted':
      markUndone(transcript, event.data)
      push(transcript, { kind: 'reverted', seq, at, ...event.data })
      break
    case 'history:rewound':
      rewind(transcript, event.data.from, seq, at)
      break
    case 'history:restored':
      restore(transcript, event.data.of)
      break
  }
}

/** Whatever becomes of the call, the fork may have changes from now on. */
export function noteForked(transcript: Folded, call: CallEntry | undefined, { type }: SessionEvent): void {
  if (type === 'tool:started' && call?.ahead === 'review') transcript.forkedTurn = call.turnId
}

function selectMode(transcript: Folded, mode: ApprovalMode, seq: number, at: number): void {
  if (mode === transcript.mode) return
  transcript.mode = mode
  const message = `Approval mode: ${MODE_NAMES[mode]}.`
  push(transcript, { kind: 'notice', seq, at, code: 'mode_changed', message })
}

function openReview(transcript: Folded, data: EventData<'review:opened'>, seq: number, at: number): void {
  const { reviewId, turnId, changes } = data
  const { index, entry } = reviewEntry(transcript, reviewId)
  transcript.forkedTurn = null
  if (entry?.decision) return
  if (entry) transcript.entries.splice(index, 1)
  if (transcript.review?.reviewId === reviewId) transcript.review = null
  // The fork has no changes, or none any more.
  if (changes.total === 0) return
  push(transcript, { kind: 'review', seq, at, reviewId, changes })
  transcript.review = { reviewId, turnId, changes }
}

/** The first decision about the changes that are open counts. */
function resolveReview(transcript: Folded, data: EventData<'review:resolved'>): void {
  const { review } = transcript
  if (review?.reviewId !== data.reviewId || review.changes.hash !== data.hash) return
  transcript.review = null
  transcript.unapplied = data.reviewId
  updateReview(transcript, data.reviewId, (entry) => ({ ...entry, decision: without(data) }))
}

/** A revert since a version undoes all later reviews too; a revert of one may leave some of its files. */
function markUndone({ entries }: Folded, { of, scope, changes }: EventData<'files:reverted'>): void {
  const start = entries.findIndex((each) => changeIdOf(each) === of)
  if (start < 0) return
  for (let at = start; at < entries.length; at++) {
    const entry = entries[at]
    const accepted = entry && isReview(entry) ? entry.applied?.changes : undefined
    const isUndone = scope === 'since' || (at === start && changes.total >= (accepted?.total ?? 0))
    if (entry && accepted && isUndone) entries[at] = { ...entry, undone: true } as ReviewEntry
  }
}

function changeIdOf(entry: AnyEntry): string | undefined {
  return isReview(entry) ? entry.applied?.changes?.changeId : entry.callId && `call:${entry.callId}`
}

function updateReview(transcript: Folded, reviewId: string, change: (entry: ReviewEntry) => ReviewEntry): void {
  const { index, entry } = reviewEntry(transcript, reviewId)
  if (entry) transcript.entries[index] = change(entry)
}

function reviewEntry({ entries }: Folded, reviewId: string): { index: number; entry: ReviewEntry | undefined } {
  const index = entries.findLastIndex((each) => isReview(each) && each.reviewId === reviewId)
  const entry = entries[index]
  return { index, entry: entry && isReview(entry) ? entry : undefined }
}

function isReview(entry: AnyEntry): entry is ReviewEntry {
  return entry.kind === 'review'
}

function push({ entries }: Folded, entry: EffectEntry | NoticeEntry): void {
  entries.push(entry)
}

/** Notices that belong to one attempt of the model; others, such as those about files or the sandbox, stay true. */
const NOTICES_OF_ATTEMPT = new Set(['model_waiting', 'invalid_call'])

/** Whether the entry is what the person or the model said, did or tried, and not something that stays true. */
export function isOfConversation({ kind, code }: { kind: string; code?: string }): boolean {
  if (kind === 'notice') return NOTICES_OF_ATTEMPT.has(code ?? '')
  return kind === 'user' || kind === 'agent' || kind === 'call' || kind === 'error'
}

function rewind(transcript: Folded, from: number, seq: number, at: number): void {
  const { entries } = transcript
  for (let i = entries.length - 1; i >= 0; i--) {
    const entry = entries[i]
    if (!entry || entry.seq < from) break
    // A new object, so that a page that compares entries notices the change.
    if (isOfConversation(entry)) entries[i] = { ...entry, rewound: true }
  }
  transcript.turns += 1
  transcript.rewoundTurns = transcript.turns
  transcript.contextTokens = 0
  // The last answer is gone, so there is nothing to retry.
  transcript.lastTurnEnd = null
  push(transcript, { kind: 'rewound', seq, at, from, turn: transcript.turns })
}

/** An entry that an earlier rewind took back stays taken back. */
function restore(transcript: Folded, of: number): void {
  const { entries } = transcript
  transcript.turns += 1
  const at = entries.findIndex((entry) => entry.seq === of && isRewind(entry))
  const undone = entries[at]
  if (!undone || !isRewind(undone)) return
  entries[at] = { ...undone, undone: true }
  const others = entries.filter(isRewind).filter((entry) => !entry.undone)
  const isTaken = ({ seq }: AnyEntry) => others.some((other) => seq >= other.from && seq < other.seq)
  for (const [index, entry] of entries.entries()) {
    if (entry.seq < undone.from || !entry.rewound || isTaken(entry)) continue
    const { rewound: _, ...restored } = entry
    entries[index] = restored
  }
  transcript.rewoundTurns = Math.max(0, ...others.map(({ turn }) => turn))
}

function isRewind(entry: AnyEntry): entry is Extract<EffectEntry, { kind: 'rewound' }> {
  return entry.kind === 'rewound'
}

/** A turn that a rewind ended may still write, for example on another instance. That counts as taken back too. */
export function lateMark({ rewoundTurns }: { rewoundTurns: number }, turnId = ''): { rewound?: true } {
  const number = /^t(\d+)$/.exec(turnId)?.[1]
  return number !== undefined && Number(number) <= rewoundTurns ? { rewound: true } : {}
}

function without<T extends { reviewId: string }>({ reviewId: _, ...rest }: T): Omit<T, 'reviewId'> {
  return rest
}
