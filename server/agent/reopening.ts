import type { EventData, SessionEvent } from '../../contract/events.ts'
import { type CallEntry, callOf, type lastAnswer, type Transcript } from '../../contract/transcript.ts'
import { exchanged } from './model-history.ts'
import { partsOf } from './stored-parts.ts'

type Response = Extract<SessionEvent, { type: 'agent:response' }>

/**
 * Which part of the last turn a new attempt replaces. Calls that ran have happened, so they and their results stay. A finished answer
 * loses only its last text. A turn that failed or was stopped loses what was cut off, and a step whose calls were all cancelled by
 * the stop.
 */
export function reopening(
  events: readonly SessionEvent[],
  transcript: Transcript,
  { turnId, action }: NonNullable<ReturnType<typeof lastAnswer>>
): Omit<EventData<'turn:reopened'>, 'turnId'> {
  const answers = answersToLastQuestion(events)
  const replaced: Response[] = []
  const drop = () => replaced.push(...answers.splice(-1))
  const dropPartial = () => {
    while (answers.at(-1)?.data.partial) drop()
  }
  if (action === 'regenerate') drop()
  dropPartial()
  if (action === 'retry' && isCancelled(answers.at(-1), transcript)) {
    drop()
    dropPartial()
  }
  return { of: turnId, from: replaced.at(-1)?.seq ?? firstTrace(events, transcript, turnId) }
}

function answersToLastQuestion(events: readonly SessionEvent[]): Response[] {
  const all = exchanged(events)
  const asked = all.findLastIndex(({ type }) => type === 'user:message')
  return all.slice(asked + 1).filter((event) => event.type === 'agent:response')
}

/** Whether the step asked for calls, and the stop came before any of them started or was rejected. */
function isCancelled(answer: Response | undefined, transcript: Transcript): boolean {
  const calls = partsOf(answer?.data ?? { text: '' }).filter((part) => part.type === 'tool-call')
  const isUntouched = (call: CallEntry | undefined) =>
    call?.startedAt === undefined && (call?.decision?.approved === true || call?.decision?.by === 'cancel')
  return calls.length > 0 && calls.every(({ callId }) => isUntouched(callOf(transcript, callId)))
}

/** Nothing of the answer is replaced: only the error that the turn ended with is folded. */
function firstTrace(events: readonly SessionEvent[], { entries, seq }: Transcript, turnId: string): number {
  const last = entries.findLast(({ kind }) => kind !== 'notice')
  if (last?.kind === 'error') return last.seq
  return events.findLast(({ type, data }) => type === 'turn:end' && data.turnId === turnId)?.seq ?? seq
}
