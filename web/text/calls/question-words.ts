import type { AskedQuestion, CallEntry } from '../../../contract/transcript.ts'

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
