import type { AskedQuestion, CallEntry } from '../../../contract/transcript.ts'

/** Whether the result is only our own sentence: the call did not run, or it was interrupted before it wrote anything. */
export function isOwnSentence({ result, startedAt }: CallEntry): boolean {
  if (!result || result.content.length > 1 || result.isShortened) return false
  return interruptionWords(result) !== undefined || (result.isError && startedAt === undefined)
}

/** How a call was interrupted; undefined if it was not. */
export function interruptionWords({ outcome, interruptedBy }: NonNullable<CallEntry['result']>): string | undefined {
  if (interruptedBy === 'server') return 'Outcome unknown: the server was restarted'
  if (outcome === 'unknown') return 'Outcome unknown'
  return interruptedBy === 'person' ? 'Stopped; it may have run in part' : undefined
}

/** How a question ended. */
export function questionWords({ answer, url }: AskedQuestion, { result }: CallEntry): string {
  if (answer?.by === 'deadline') return 'Nobody answered in time'
  if (answer?.action === 'accept') return url === undefined ? 'You answered' : 'You opened its page'
  if (answer?.action === 'decline') return 'You declined'
  if (answer) return 'You gave no answer'
  if (result?.interruptedBy === 'server')
    return 'The server was restarted before there was an answer; the outcome of the call is unknown'
  return 'The call ended before there was an answer'
}
