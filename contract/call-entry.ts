/** One call of the model, as the transcript has it, and what the events do to it. */
import type { ChangeSummary, ConflictChoices, SeenConflicts } from './effects/change-set.ts'
import type { CommandEnding, Decider, EventData, ServerLogLine, SessionEvent, ToolClaims } from './events.ts'
import type { PathTarget } from './path-target.ts'
import type { AnswerAction, Question } from './questions/questions.ts'
import type { Replaced } from './replaced-text.ts'

export interface CallEntry {
  callId: string
  turnId: string
  server: string
  name: string
  args: Record<string, unknown>
  definition: string
  hash: string
  queuePosition: number
  totalInQueue: number
  definitionChange?: { before: string; after: string } | undefined
  target?: PathTarget | undefined
  claims?: ToolClaims | undefined
  again?: EventData<'tool:approval_required'>['again']
  ahead?: 'preview' | 'review' | undefined
  /** Set if a program makes the call. */
  program?: EventData<'tool:approval_required'>['program']
  /** The effects of the call in a fork. The person decides on them. */
  preview?: Preview
  /** Why it could not run in a fork; it waits for approval as in the mode `ask`. */
  previewRefused?: { code: string; reason: string }
  requestedAt: number
  decision?: {
    approved: boolean
    by: Decider
    at: number
    reason?: string | undefined
    always?: true | undefined
    reads?: true | undefined
    editedArgs?: Record<string, unknown> | undefined
    editedTarget?: PathTarget | undefined
    seen?: string | undefined
    choices?: ConflictChoices | undefined
    seenConflicts?: SeenConflicts | undefined
  }
  startedAt?: number
  /** Questions that its MCP server has asked the person during the call. */
  questions?: AskedQuestion[]
  result?: {
    isError: boolean
    content: unknown[]
    at: number
    outcome?: 'unknown' | undefined
    interruptedBy?: 'person' | 'server' | undefined
    ending?: CommandEnding | undefined
    replaced?: Replaced | undefined
    changes?: ChangeSummary | undefined
    isForked?: true | undefined
    leftRunning?: true | undefined
    durationMs?: number | undefined
    program?: { savedTokens: number } | undefined
    log?: ServerLogLine[] | undefined
    isShortened?: true | undefined
  }
}

type Preview = Omit<EventData<'tool:previewed'>, 'callId'> & { at: number }

export interface AskedQuestion extends Question {
  id: string
  at: number
  expiresAt: number
  answer?: { action: AnswerAction; by: 'human' | 'deadline'; at: number; seq: number }
}

/** Whether the call waits for a person. A call that is still running in a fork does not. */
export function waitsForPerson({ decision, ahead, preview, previewRefused }: CallEntry): boolean {
  return !decision && (ahead !== 'preview' || preview !== undefined || previewRefused !== undefined)
}

/** How long the call itself ran, without the person's wait. Undefined if it has not ended, or never ran. */
export function ranMs({ startedAt, result, preview }: CallEntry): number | undefined {
  const known = result ? result.durationMs : preview?.durationMs
  if (known !== undefined || startedAt === undefined || !result) return known
  return result.at - startedAt
}

/** A call that ran never needs approval again. */
export function isAskedAgain(known: CallEntry, { again }: EventData<'tool:approval_required'>): boolean {
  return known.result === undefined && again !== undefined && again.times > (known.again?.times ?? 1)
}

/** No reason means that the person stopped the turn. */
export function dropCall(call: CallEntry, at: number, reason?: string): void {
  call.decision = { approved: false, by: 'cancel', at, ...(reason !== undefined && { reason }) }
}

export function applyToCall(call: CallEntry | undefined, event: SessionEvent): void {
  if (!call) return
  if (event.type === 'tool:approval_resolved' && !call.decision) {
    const { callId: _, approved, by, reason, args, target, ...more } = event.data
    const edited = { editedArgs: args, ...(target && { editedTarget: target }) }
    call.decision = { approved, by, at: event.at, reason, ...edited, ...more }
  } else if (event.type === 'tool:started' && call.startedAt === undefined) {
    call.startedAt = event.at
  } else if (event.type === 'tool:result' && !call.result) {
    const { callId: _, ...result } = event.data
    call.result = { ...result, at: event.at }
  } else if (event.type === 'tool:previewed' && !call.decision && !call.preview) {
    const { callId: _, ...preview } = event.data
    call.preview = { ...preview, at: event.at }
  } else if (event.type === 'tool:preview_refused' && !call.decision && !call.preview) {
    const { code, reason } = event.data
    call.previewRefused = { code, reason }
  } else applyQuestion(call, event)
}

function applyQuestion(call: CallEntry, event: SessionEvent): void {
  if (event.type === 'tool:question' && !call.result) {
    const { callId: _, ...question } = event.data
    call.questions = [...(call.questions ?? []).filter(({ id }) => id !== question.id), { ...question, at: event.at }]
  } else if (event.type === 'tool:question_answered') {
    const { action, by } = event.data
    const question = call.questions?.find(({ id }) => id === event.data.id)
    if (question && !question.answer) question.answer = { action, by, at: event.at, seq: event.seq }
  }
}
