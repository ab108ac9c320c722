import type { EventData, SessionEvent } from '../../contract/events.ts'
import { describeFile, isFileBlock, partType } from '../../contract/stored-files.ts'
import { type CallEntry, callOf, type Transcript } from '../../contract/transcript.ts'
import { headOf, tailOf } from '../lib/cut-text.ts'
import type { AssistantPart, ChatFile, ChatMessage, ToolAnswer } from '../models/port.ts'
import { carriedOver, foreignAnswers, withPortableId } from './foreign-parts.ts'
import { reviewNotes } from './review-notes.ts'
import { partsOf } from './stored-parts.ts'
import { savedAttachments, userMessage } from './user-message.ts'
import { workspaceNotes } from './workspace-notes.ts'

/** The maximum length of one tool answer in the history. The person sees all of it, the model its beginning and end. */
const MAX_ANSWER_CHARS = 60_000

/** After a partial answer in a turn that goes on: vendors accept no second answer without a message in between. */
const CONTINUE: ChatMessage = { role: 'user', text: '[Continue your answer where it was cut off.]' }
const CUT_OFF = {
  stopped: 'The user stopped this answer here.',
  failed: 'This answer was cut off here by an error.',
  server: 'This answer was cut off here when the server was stopped.'
}

/** The conversation since its last fresh start, in the form that the model gets. */
export function modelHistory(events: readonly SessionEvent[], transcript: Transcript): ChatMessage[] {
  const messages: ChatMessage[] = []
  const counted = withoutUndone(events)
  const notes = workspaceNotes(sinceFreshStart(counted), askedIn(transcript))
  const reviews = reviewNotes(counted)
  const saved = savedAttachments(events)
  const isForeign = foreignAnswers(events)
  for (const event of exchanged(events)) {
    if (event.type === 'user:message') {
      // The note about files comes last: accepted files may have been reverted since.
      const told = [reviews.get(event.seq), notes.get(event.seq)].filter((note) => note !== undefined)
      messages.push(userMessage(event.data, saved, told))
      continue
    }
    const isCarried = isForeign({ seq: event.seq, turnId: event.data.turnId })
    const parts = isCarried ? carriedOver(told(event.data)) : told(event.data)
    if (parts.length === 0) continue
    if (messages.at(-1)?.role === 'assistant') messages.push(CONTINUE)
    const answers = parts.filter((part) => part.type === 'tool-call').map((part) => answerTo(part, transcript))
    messages.push({ role: 'assistant', parts: isCarried ? parts.map(withPortableId) : parts })
    if (answers.length > 0) messages.push({ role: 'tool', answers: isCarried ? answers.map(withPortableId) : answers })
  }
  if (messages.at(-1)?.role === 'assistant') messages.push(CONTINUE)
  return messages
}

/** Finds the `seq` of a call. The model asked for a call of a program when it asked for the program. */
function askedIn({ entries, calls }: Transcript): (callId: string) => number | undefined {
  const seqs = new Map(entries.flatMap((entry) => (entry.kind === 'call' ? [[entry.callId, entry.seq] as const] : [])))
  return (callId) => seqs.get(callOf({ calls }, callId)?.program?.callId ?? callId)
}

type Exchanged = Extract<SessionEvent, { type: 'user:message' | 'agent:response' }>

/** Without the rewinds that were undone: then what they took back was never gone. */
function withoutUndone(events: readonly SessionEvent[]): readonly SessionEvent[] {
  const undone = new Set(events.flatMap(({ type, data }) => (type === 'history:restored' ? [data.of] : [])))
  return undone.size === 0 ? events : events.filter(({ type, seq }) => type !== 'history:rewound' || !undone.has(seq))
}

/** The messages and answers that count since the last fresh start: without those that were replaced or taken back. */
export function exchanged(events: readonly SessionEvent[]): Exchanged[] {
  let kept: Exchanged[] = []
  let turnId: string | null = null
  for (const event of sinceFreshStart(withoutUndone(events))) {
    if (event.type === 'user:message' || event.type === 'turn:reopened') turnId = event.data.turnId
    if (event.type === 'user:message') kept.push(event)
    if (event.type === 'history:rewound') turnId = null
    if (event.type === 'turn:reopened' || event.type === 'history:rewound')
      kept = kept.filter(({ seq }) => seq < event.data.from)
    // An answer of a stopped turn may be stored after the next question, but it does not answer it.
    if (event.type === 'agent:response' && event.data.turnId === turnId) kept.push(event)
  }
  return kept
}

export function stepsInTurn(events: readonly SessionEvent[], turnId: string | null): number {
  return events.filter((event) => event.type === 'agent:response' && event.data.turnId === turnId).length
}

export function isFreshStart({ type, data }: SessionEvent): boolean {
  return type === 'history:reset' || (type === 'model:selected' && data.history !== 'keep')
}

/** A question that is still open when someone starts afresh was asked at the same moment, so it becomes the first of the new history. */
export function sinceFreshStart(events: readonly SessionEvent[]): readonly SessionEvent[] {
  const start = events.findLastIndex(isFreshStart)
  const before = events.slice(0, Math.max(0, start))
  const asked = before.findLastIndex(({ type }) => type === 'user:message')
  const begun = before.findLastIndex(({ type }) => type === 'user:message' || type === 'turn:reopened')
  const ended = before.findLastIndex(({ type }) => type === 'turn:end')
  return asked >= 0 && begun > ended ? [...before.slice(asked), ...events.slice(start + 1)] : events.slice(start + 1)
}

function told(data: EventData<'agent:response'>): AssistantPart[] {
  if (!data.partial) return partsOf(data)
  return [{ type: 'text', text: `${data.text}\n\n[${CUT_OFF[data.partial]}]`.trimStart() }]
}

function answerTo(part: Extract<AssistantPart, { type: 'tool-call' }>, transcript: Transcript): ToolAnswer {
  const { callId, name, invalid } = part
  if (invalid !== undefined) return { callId, name, text: invalid, isError: true }
  const call = callOf(transcript, callId)
  if (!call || (!call.decision && !call.result))
    return { callId, name, text: 'This call was never run.', isError: true }
  const { decision, result } = call
  if (decision?.approved === false)
    return { callId, name, text: rejection(decision, call.preview !== undefined), isError: true }
  if (!result) return { callId, name, text: 'This call was stopped before it ended.', isError: true }
  const edited = decision?.editedArgs ?? (call.again?.isEdited ? call.args : undefined)
  const note = edited ? `The user changed the arguments; this ran with ${JSON.stringify(edited)}.\n` : ''
  const left = Object.entries(decision?.choices ?? {}).flatMap(([path, version]) => (version === 'fork' ? [] : path))
  const kept = left.length === 0 ? '' : `The user kept another version of these files: ${leftWords(left)}.\n`
  const files = filesIn(result.content)
  return {
    callId,
    name,
    text: shorten(note + kept + endedProcesses(result) + contentText(result.content)).toWellFormed(),
    isError: result.isError,
    ...(files.length > 0 && { files })
  }
}

/** A model that has started a server in a fork must not rely on it later. */
function endedProcesses({ leftRunning, isForked }: NonNullable<CallEntry['result']>): string {
  if (!leftRunning) return ''
  if (isForked)
    return 'Processes that it left running end with this turn, or earlier if the turn waits for the user for a while.\n'
  return 'It ran in a copy of the sandbox. Processes that it left running have ended; start them again if you need them.\n'
}

const MAX_NAMED = 50
function leftWords(paths: readonly string[]): string {
  const named = paths.slice(0, MAX_NAMED).map((path) => JSON.stringify(path))
  return [...named, ...(paths.length > MAX_NAMED ? [`and ${paths.length - MAX_NAMED} more`] : [])].join(', ')
}

function rejection(decision: NonNullable<CallEntry['decision']>, isPreviewed: boolean): string {
  const reason = decision.reason ? ` Reason: ${decision.reason}` : ''
  if (isPreviewed && decision.by === 'human')
    return `This ran in a copy of the workspace. The user discarded its changes and its output; nothing of it has happened.${reason}`
  if (decision.by === 'policy') return `The policy does not allow this call; it was not run.${reason}`
  if (decision.by === 'cancel') return 'The user stopped the turn; this call was not run.'
  return `The user rejected this call; it was not run.${reason}`
}

function filesIn(content: readonly unknown[]): ChatFile[] {
  return content.filter(isFileBlock).map(({ file, name }, at) => ({ ...file, name: name ?? `image ${at + 1}` }))
}

export function contentText(content: readonly unknown[]): string {
  return content
    .map((part) => {
      if (isFileBlock(part)) return `[${part.type}: ${describeFile(part.file)}]`
      const { text } = (part ?? {}) as { text?: unknown }
      return typeof text === 'string' ? text : `[${partType(part)} content]`
    })
    .join('\n')
}

function shorten(text: string): string {
  if (text.length <= MAX_ANSWER_CHARS) return text
  const half = MAX_ANSWER_CHARS / 2
  const left = text.length - MAX_ANSWER_CHARS
  return `${headOf(text, half)}\n[… ${left} characters left out …]\n${tailOf(text, half)}`
}
