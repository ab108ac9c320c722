import type { CallEntry, Transcript } from '../../contract/transcript.ts'
import { contentText } from '../agent/model-history.ts'

/** What calls may weigh in what a page is sent at once; a conversation can have hundreds of megabytes. */
const MAX_CALLS_CHARS = 8 * 1024 * 1024
const HEAD_CHARS = 1000
const LEFT_OUT = '[… left out here, because this conversation is long: the export has all of it …]'

/** The conversation as a page gets it when it opens it: the newest calls whole, of older ones no more than the beginning. */
export function shownTranscript(transcript: Transcript): Transcript {
  let room = MAX_CALLS_CHARS
  const calls: Transcript['calls'] = { ...transcript.calls }
  for (const entry of transcript.entries.toReversed()) {
    const call = entry.kind === 'call' ? calls[entry.callId] : undefined
    if (!call) continue
    room -= weightOf(call)
    if (room < 0 && call.result) calls[call.callId] = shortened(call)
  }
  return room < 0 ? { ...transcript, calls } : transcript
}

function shortened(call: CallEntry): CallEntry {
  const { decision, result, ...rest } = call
  return {
    ...rest,
    args: shortArgs(rest.args),
    ...(decision && { decision: { ...decision, editedArgs: decision.editedArgs && shortArgs(decision.editedArgs) } }),
    ...(result && { result: { ...result, content: shortContent(result.content) } })
  }
}

function shortArgs(args: Record<string, unknown>): Record<string, unknown> {
  if (charsOf(args) <= HEAD_CHARS) return args
  const entries = Object.entries(args).slice(0, 10)
  return Object.fromEntries(entries.map(([key, value]) => [key, charsOf(value) <= HEAD_CHARS / 10 ? value : LEFT_OUT]))
}

function shortContent(content: unknown[]): unknown[] {
  if (charsOf(content) <= HEAD_CHARS) return content
  const text = contentText(content.slice(0, 1)).slice(0, HEAD_CHARS).toWellFormed()
  return [{ type: 'text', text: `${text}\n${LEFT_OUT}` }]
}

function weightOf({ args, decision, result }: CallEntry): number {
  return charsOf(args) + charsOf(decision?.editedArgs) + charsOf(result?.content)
}

/** Strings are what is large; they are not copied to be counted. */
function charsOf(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 8
  return Object.entries(value).reduce((sum, [key, item]) => sum + key.length + charsOf(item), 0)
}
