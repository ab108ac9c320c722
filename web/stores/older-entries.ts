import type { Snapshot } from '../../contract/live.ts'
import type { CallEntry, Transcript } from '../../contract/transcript.ts'

/**
 * A snapshot contains the newest part of a long conversation. Older entries that the page has loaded are kept if they certainly belong
 * to the same conversation and can't have changed. Returns undefined if they must be loaded again.
 */
export function withOlderEntries(known: Transcript, { transcript, olderBefore }: Snapshot): Transcript | undefined {
  const first = transcript.entries[0]
  if (olderBefore === undefined || !first || known.seq < first.seq) return undefined
  const same = known.entries.find(({ seq }) => seq === first.seq)
  if (same?.at !== first.at || same.kind !== first.kind) return undefined
  const older = known.entries.filter(({ seq }) => seq < first.seq)
  const ids = older.flatMap((entry) => (entry.kind === 'call' ? [entry.callId] : []))
  const calls = ids.map((id) => known.calls[id])
  if (older.length === 0 || !calls.every(isOver)) return undefined
  const kept = Object.fromEntries(calls.flatMap((call) => (call ? [[call.callId, call]] : [])))
  return { ...transcript, entries: [...older, ...transcript.entries], calls: { ...kept, ...transcript.calls } }
}

function isOver(call: CallEntry | undefined): boolean {
  return call?.result !== undefined || call?.decision?.approved === false
}
