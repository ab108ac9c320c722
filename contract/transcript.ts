/**
 * Computes the transcript from events. It is pure and the same on both sides: the page shows the transcript, and the server bases its
 * decisions on it. An event that makes no sense (a decision about an unknown call) changes nothing.
 */
import type { AddedFile } from './attachments.ts'
import {
  type AskedQuestion,
  applyToCall,
  type CallEntry,
  dropCall,
  isAskedAgain,
  waitsForPerson
} from './call-entry.ts'
import {
  applyEffect,
  type EffectEntry,
  isOfConversation,
  lateMark,
  noteForked,
  type OpenReview
} from './effects/effect-entries.ts'
import { type ApprovalMode, DEFAULT_MODE } from './effects/modes.ts'
import type { EventData, SessionEvent, TurnEndReason } from './events.ts'
import { FILES_CHANGED, type FileChange, filesChangedText, MAX_FILE_CHANGES } from './file-changes.ts'
import { type SessionSettings, settingsChange } from './session-settings.ts'
import { noUsage, plusUsage, type UsageSum } from './usage.ts'

export type { AskedQuestion, CallEntry } from './call-entry.ts'

/** Ids come from models, so an id like `constructor` must not find an inherited member. */
export function callOf({ calls }: Pick<Transcript, 'calls'>, callId: string): CallEntry | undefined {
  return Object.hasOwn(calls, callId) ? calls[callId] : undefined
}

/**
 * `superseded`: a later attempt has replaced it. `rewound`: the person took it back. Both stay readable, but the model no longer gets
 * them.
 */
export type TranscriptEntry = { superseded?: true; rewound?: true } & (
  | ({ kind: 'user'; seq: number; at: number; files?: AddedFile[]; usage?: UsageSum } & EventData<'user:message'>)
  | ({ kind: 'agent'; seq: number; at: number } & Omit<EventData<'agent:response'>, 'parts'>)
  | { kind: 'call'; seq: number; at: number; callId: string }
  | { kind: 'error'; seq: number; at: number; code: string; message: string }
  | { kind: 'notice'; seq: number; at: number; code: string; message: string; files?: FileChange[]; servers?: string[] }
  | { kind: 'fresh-start'; seq: number; at: number; model: string | null }
  /** Another model, which continues the conversation. */
  | { kind: 'model-switch'; seq: number; at: number; model: string }
  | EffectEntry
)

export interface Transcript {
  seq: number
  entries: TranscriptEntry[]
  calls: Record<string, CallEntry>
  /** The running turn, if any. */
  turnId: string | null
  lastTurnEnd: { turnId: string; reason: TurnEndReason } | null
  /** Number of turns so far, retries and rewinds included. */
  turns: number
  /** The number of the last rewind: turns up to it are over, and what they still say was taken back. */
  rewoundTurns: number
  model: string | null
  /** `server/name` → hash of the definition it was allowed with. */
  allowed: Record<string, string>
  usage: UsageSum
  /** How much of the model's context the last step filled, with its answer; 0 if the next one starts afresh. */
  contextTokens: number
  raisedLimit: number
  settings: SessionSettings
  mode: ApprovalMode
  /** The review that waits for the person. */
  review: OpenReview | null
  /** A turn with calls that ran in a fork for a review, which is opened when the turn has ended. */
  forkedTurn: string | null
  /** The id of a review that was decided and is not applied yet. */
  unapplied: string | null
}

export function emptyTranscript(): Transcript {
  return {
    seq: 0,
    entries: [],
    calls: {},
    turnId: null,
    lastTurnEnd: null,
    turns: 0,
    rewoundTurns: 0,
    model: null,
    allowed: {},
    usage: noUsage(),
    contextTokens: 0,
    raisedLimit: 0,
    settings: {},
    mode: DEFAULT_MODE,
    review: null,
    forkedTurn: null,
    unapplied: null
  }
}

/** Applies one event in place (a transcript may be long) and returns the transcript. */
export function applyEvent(transcript: Transcript, event: SessionEvent): Transcript {
  transcript.seq = event.seq
  const { seq, at } = event
  switch (event.type) {
    case 'user:message':
      // Calls of a turn that was cut off and never ended: nobody waits for a decision any more.
      if (transcript.turnId !== null && transcript.turnId !== event.data.turnId)
        dropCalls(transcript, transcript.turnId, at, 'The turn ended.')
      transcript.turnId = event.data.turnId
      transcript.turns += 1
      transcript.entries.push({ kind: 'user', seq, at, ...event.data })
      break
    case 'agent:response':
      if (event.data.text !== '' || event.data.reasoning)
        transcript.entries.push({ ...agentEntry(event.data, seq, at), ...lateMark(transcript, event.data.turnId) })
      break
    case 'tool:approval_required':
      addCall(transcript, event.data, seq, at)
      break
    case 'agent:error': {
      const { code, message, turnId } = event.data
      transcript.entries.push({ kind: 'error', seq, at, code, message, ...lateMark(transcript, turnId) })
      break
    }
    case 'session:notice':
      addNotice(transcript, event.data, seq, at)
      break
    case 'model:selected':
      selectModel(transcript, event.data, seq, at)
      break
    case 'history:reset':
      transcript.entries.push({ kind: 'fresh-start', seq, at, model: null })
      transcript.contextTokens = 0
      break
    case 'session:settings': {
      const message = settingsChange(transcript.settings, event.data)
      if (message !== '') transcript.entries.push({ kind: 'notice', seq, at, code: 'settings_changed', message })
      transcript.settings = event.data
      break
    }
    case 'turn:end':
      transcript.lastTurnEnd = event.data
      if (transcript.turnId === event.data.turnId) transcript.turnId = null
      dropCalls(transcript, event.data.turnId, at, event.data.reason === 'cancelled' ? undefined : 'The turn ended.')
      break
    case 'turn:reopened':
      reopen(transcript, event.data)
      break
    default:
      applyQuietly(transcript, event)
  }
  return transcript
}

/** Events that add no entry of their own. */
function applyQuietly(transcript: Transcript, event: SessionEvent): void {
  switch (event.type) {
    case 'tool:approval_resolved':
    case 'tool:started':
    case 'tool:result':
    case 'tool:previewed':
    case 'tool:preview_refused':
    case 'tool:question':
    case 'tool:question_answered':
      noteForked(transcript, callOf(transcript, event.data.callId), event)
      applyToCall(callOf(transcript, event.data.callId), event)
      break
    case 'usage':
      addUsage(transcript, event.data)
      break
    case 'tool:allowed':
      transcript.allowed[`${event.data.server}/${event.data.name}`] = event.data.definition
      break
    case 'tool:allow_revoked':
      delete transcript.allowed[`${event.data.server}/${event.data.name}`]
      break
    case 'files:added':
      addFiles(transcript, event.data)
      break
    case 'limit:raised':
      transcript.raisedLimit = event.data.tokens
      break
    default:
      applyEffect(transcript, event)
  }
}

/** If a fresh start or another turn came first, nothing is reopened; the number of the turn is used up all the same. */
function reopen(transcript: Transcript, { turnId, of, from }: EventData<'turn:reopened'>): void {
  transcript.turns += 1
  if (lastAnswer(transcript)?.turnId !== of) return
  transcript.turnId = turnId
  const { entries } = transcript
  for (let at = entries.length - 1; at >= 0; at--) {
    const entry = entries[at]
    if (!entry || entry.seq < from) return
    // A new object, so that a page that compares entries notices the change.
    if (isOfConversation(entry) && entry.kind !== 'user') entries[at] = { ...entry, superseded: true }
  }
}

const REGENERATED: readonly TurnEndReason[] = ['done', 'length', 'refused']

/** The last turn, if it is over and the model still has its question, and whether it is retried or its answer is written anew. */
export function lastAnswer(transcript: Transcript): { turnId: string; action: 'retry' | 'regenerate' } | null {
  const { turnId, lastTurnEnd, entries } = transcript
  if (turnId !== null || lastTurnEnd === null) return null
  const begun = entries.findLast(({ kind }) => kind === 'user' || kind === 'fresh-start')
  if (begun?.kind === 'fresh-start') return null
  return { turnId: lastTurnEnd.turnId, action: REGENERATED.includes(lastTurnEnd.reason) ? 'regenerate' : 'retry' }
}

function selectModel(
  transcript: Transcript,
  { model, history }: EventData<'model:selected'>,
  seq: number,
  at: number
): void {
  const kind = history === 'keep' ? 'model-switch' : 'fresh-start'
  if (transcript.model !== null) transcript.entries.push({ kind, seq, at, model })
  transcript.model = model
  if (kind === 'fresh-start') transcript.contextTokens = 0
}

/** Each message has the usage of its turn and of the retries of that turn. */
function addUsage(transcript: Transcript, step: EventData<'usage'>): void {
  transcript.usage = plusUsage(transcript.usage, step)
  if (step.of === undefined) transcript.contextTokens = step.inputTokens + step.outputTokens
  const { entries } = transcript
  const asked = entries.findLastIndex(({ kind }) => kind === 'user')
  const entry = entries[asked]
  // A new object, so that a page that compares entries notices the change.
  if (entry?.kind === 'user') entries[asked] = { ...entry, usage: plusUsage(entry.usage ?? noUsage(), step) }
}

function agentEntry({ parts: _, ...data }: EventData<'agent:response'>, seq: number, at: number): TranscriptEntry {
  return { kind: 'agent', seq, at, ...data }
}

/** Six uploads in a row are one entry. */
function addNotice(transcript: Transcript, data: EventData<'session:notice'>, seq: number, at: number): void {
  const { code, message, files, servers } = data
  const last = transcript.entries.at(-1)
  const known = last?.kind === 'notice' && last.code === FILES_CHANGED ? last.files : undefined
  if (!files || !known || last?.kind !== 'notice' || known.length + files.length > MAX_FILE_CHANGES) {
    transcript.entries.push({
      kind: 'notice',
      seq,
      at,
      code,
      message,
      ...(files && { files }),
      ...(servers && { servers })
    })
    return
  }
  last.files = [...known, ...files]
  last.message = filesChangedText(last.files)
}

/** Shows where the attachments of a message are in the workspace. */
function addFiles({ entries }: Transcript, { turnId, files }: EventData<'files:added'>): void {
  const at = entries.findLastIndex((each) => each.kind === 'user' && each.turnId === turnId)
  const entry = entries[at]
  if (entry?.kind === 'user') entries[at] = { ...entry, files }
}

function addCall(transcript: Transcript, data: EventData<'tool:approval_required'>, seq: number, at: number): void {
  const { callId } = data
  // This name can't be used as a key; our own steps never use it.
  const known = callOf(transcript, callId)
  if (callId === '__proto__' || (known && !isAskedAgain(known, data))) return
  const call: CallEntry = { ...data, requestedAt: at }
  // Requested by a step that was still running when its turn was stopped.
  if (data.turnId !== transcript.turnId) dropCall(call, at, 'The turn ended.')
  transcript.calls[callId] = call
  // The calls of a program are shown with it.
  if (!known && !data.program)
    transcript.entries.push({ kind: 'call', seq, at, callId, ...lateMark(transcript, data.turnId) })
}

/** When a turn ends, its waiting calls can no longer be approved. */
function dropCalls(transcript: Transcript, turnId: string, at: number, reason?: string): void {
  for (const call of Object.values(transcript.calls))
    if (call.turnId === turnId && !call.decision) dropCall(call, at, reason)
}

/** A question can be answered while its call runs. */
export function isOpenQuestion(
  { turnId }: Pick<Transcript, 'turnId'>,
  call: CallEntry,
  question: AskedQuestion
): boolean {
  return !question.answer && !call.result && call.turnId === turnId
}

/** The questions of MCP servers that wait for an answer. */
export function openQuestions(transcript: Transcript): { call: CallEntry; question: AskedQuestion }[] {
  return Object.values(transcript.calls).flatMap((call) =>
    (call.questions ?? []).flatMap((question) =>
      isOpenQuestion(transcript, call, question) ? [{ call, question }] : []
    )
  )
}

/** The calls that wait for the person. */
export function pendingCalls(transcript: Transcript): CallEntry[] {
  return Object.values(transcript.calls).filter(waitsForPerson)
}

/** The calls without a decision, including those that run in a fork. */
export function undecidedCalls(transcript: Transcript): CallEntry[] {
  return Object.values(transcript.calls).filter((call) => !call.decision)
}

/** Whether a fork has changes that wait for a review, now or at the end of the turn. */
export function hasOpenFork({ review, forkedTurn }: Transcript): boolean {
  return review !== null || forkedTurn !== null
}

/**
 * The other waiting calls that "Always allow" on this one approves too: those of the same tool with the same definition. A call
 * whose card shows a changed definition, or that needs approval again, is never included: it needs its own decision.
 */
export function coveredCalls(transcript: Transcript, call: CallEntry): CallEntry[] {
  return undecidedCalls(transcript).filter(
    ({ callId, server, name, definition, definitionChange, again }) =>
      callId !== call.callId &&
      server === call.server &&
      name === call.name &&
      definition === call.definition &&
      definitionChange === undefined &&
      again === undefined
  )
}
