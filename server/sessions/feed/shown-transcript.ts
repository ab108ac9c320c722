import { callsOfEntry } from '../../../contract/programs.ts'
import type { Replaced } from '../../../contract/replaced-text.ts'
import type { EntriesReply } from '../../../contract/rest.ts'
import type { CallEntry, Transcript, TranscriptEntry } from '../../../contract/transcript.ts'
import { contentText } from '../../agent/model-history.ts'
import type { StoredEvent } from '../../storage/event-log.ts'

/** How much of a conversation a page gets at once; it requests older parts when the person wants to see them. */
const PAGE_CHARS = 128 * 1024
/** The maximum size of calls if open ones make it longer; a conversation can have hundreds of megabytes. */
const MAX_CALLS_CHARS = 8 * 1024 * 1024
/** A page gets a larger call without most of it, once it has run; it fetches all of it on request. */
const MAX_CALL_CHARS = 1_500_000
const SHOWN_CHARS = 100_000
const HEAD_CHARS = 1000
const LEFT_OUT = '[… left out here because it is long; the export has all of it …]'

/** The newest part of the conversation, which a page gets when it opens it. Open calls are always included in full. */
export function shownTranscript(transcript: Transcript): { transcript: Transcript; olderBefore?: number } {
  const { entries } = transcript
  const start = Math.min(startOfPage(transcript, entries.length), firstOpen(transcript))
  const isWhole = start === 0
  const shown = isWhole ? transcript : { ...transcript, ...partOf(transcript, start, entries.length) }
  const first = shown.entries[0]
  return { transcript: withShortCalls(shown), ...(isWhole || !first ? {} : { olderBefore: first.seq }) }
}

/** One page of the entries before `before`. */
export function olderEntries(transcript: Transcript, before: number): EntriesReply {
  const after = transcript.entries.findIndex(({ seq }) => seq >= before)
  const end = after < 0 ? transcript.entries.length : after
  const start = startOfPage(transcript, end)
  const part = partOf(transcript, start, end)
  return { ...part, olderBefore: start === 0 ? null : (part.entries[0]?.seq ?? null) }
}

/** Returns at least one entry, however long it is. */
function startOfPage({ entries, calls }: Transcript, end: number): number {
  let start = end
  for (let room = PAGE_CHARS; start > 0 && room > 0; start--) {
    const entry = entries[start - 1]
    if (entry) room -= weightOfEntry(entry, calls)
  }
  return start
}

function partOf({ entries, calls }: Transcript, start: number, end: number): Pick<EntriesReply, 'entries' | 'calls'> {
  const part = entries.slice(start, end)
  const shown = part.flatMap((entry) => callsOfEntry(calls, entry)).map((call) => [call.callId, shownCall(call)])
  return { entries: part, calls: Object.fromEntries(shown) }
}

/** The position of the first call that needs a decision or may still run. */
function firstOpen({ entries, calls, turnId }: Transcript): number {
  const at = entries.findIndex((entry) => {
    const call = entry.kind === 'call' ? calls[entry.callId] : undefined
    return call && (!call.decision || (call.turnId === turnId && call.decision.approved && !call.result))
  })
  return at < 0 ? entries.length : at
}

function withShortCalls(transcript: Transcript): Transcript {
  let room = MAX_CALLS_CHARS
  const calls: Transcript['calls'] = { ...transcript.calls }
  for (const call of transcript.entries.toReversed().flatMap((entry) => callsOfEntry(transcript.calls, entry))) {
    calls[call.callId] = shownCall(call)
    room -= Math.min(weightOf(call), MAX_CALL_CHARS)
    if (room < 0 && isOver(call)) calls[call.callId] = shortened(call)
  }
  return { ...transcript, calls }
}

/** It ran, or was discarded after it ran in a fork. */
function isOver({ result, preview, decision }: CallEntry): boolean {
  return result !== undefined || (preview !== undefined && decision?.approved === false)
}

function shownCall(call: CallEntry): CallEntry {
  return isOver(call) && weightOf(call) > MAX_CALL_CHARS ? shortened(call, SHOWN_CHARS) : call
}

/** An event as pages get it: without what goes to the provider or to an MCP server only, and without most of a large result. */
export function shownEvent({ type, data }: StoredEvent): Record<string, unknown> {
  const { parts: _parts, values: _values, ...shown } = data
  const isLarge = type === 'tool:result' && Array.isArray(data.content) && charsOf(data.content) > MAX_CALL_CHARS
  return isLarge
    ? { ...shown, content: shortContent(data.content as unknown[], SHOWN_CHARS), isShortened: true }
    : shown
}

function weightOfEntry(entry: TranscriptEntry, calls: Transcript['calls']): number {
  return callsOfEntry(calls, entry).reduce((sum, call) => sum + 300 + weightOf(call), 100 + charsOf(entry))
}

/** A finished call without most of its arguments and result. */
export function shortened(call: CallEntry, maxChars = HEAD_CHARS): CallEntry {
  const { decision, result, preview, ...rest } = call
  return {
    ...rest,
    args: shortArgs(rest.args, maxChars),
    ...(decision && {
      decision: { ...decision, editedArgs: decision.editedArgs && shortArgs(decision.editedArgs, maxChars) }
    }),
    // If the preview was kept, its result is also the result of the call.
    ...(preview && {
      preview: {
        ...preview,
        result: { isError: preview.result.isError, content: shortContent(preview.result.content, maxChars) }
      }
    }),
    ...(result && {
      result: {
        ...result,
        content: shortContent(result.content, maxChars),
        replaced: shortReplaced(result),
        isShortened: true
      }
    })
  }
}

function shortArgs(args: Record<string, unknown>, maxChars: number): Record<string, unknown> {
  if (charsOf(args) <= maxChars) return args
  const entries = Object.entries(args).slice(0, 10)
  return Object.fromEntries(entries.map(([key, value]) => [key, charsOf(value) <= maxChars / 10 ? value : LEFT_OUT]))
}

/** The arguments that it belongs to are shortened too. */
function shortReplaced({ replaced }: NonNullable<CallEntry['result']>): Replaced | undefined {
  return replaced?.is === 'text' ? { is: 'large', bytes: replaced.text.length } : replaced
}

function shortContent(content: unknown[], maxChars: number): unknown[] {
  if (charsOf(content) <= maxChars) return content
  const head = contentText(content.slice(0, 1)).slice(0, maxChars).toWellFormed()
  // Copied, because a part of a string keeps the whole string in memory.
  const text = Buffer.from(head).toString()
  return [{ type: 'text', text: `${text}\n${LEFT_OUT}` }]
}

export function weightOf({ args, decision, result, preview }: CallEntry): number {
  const ran = [result?.content, result?.replaced, preview?.result.content, preview?.result.replaced]
  return ran.reduce<number>((sum, part) => sum + charsOf(part), charsOf(args) + charsOf(decision?.editedArgs))
}

/** Only strings are large; they are counted without copying. */
function charsOf(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 8
  return Object.entries(value).reduce((sum, [key, item]) => sum + key.length + charsOf(item), 0)
}
