/** What must be true after every walk. Pure: reads the evidence, and says in sentences what does not hold. */
import type { SessionEvent } from '../../contract/events.ts'
import { applyEvent, emptyTranscript, type TranscriptEntry } from '../../contract/transcript.ts'
import type { StoredEvent } from '../../server/storage/event-log.ts'
import type { SessionRecord } from '../../server/storage/session-store.ts'
import { type Journal, MARKER } from './worker.ts'

/** A sandbox that is lost in the moment between a command's end and the saving of its files: told, and so no silent loss. */
const UNSAVED = /could not be saved/

export interface SessionEvidence {
  journal: Journal
  events: StoredEvent[]
  /** The marks that its commands have left in its files, or why nobody could look. */
  effects: string[] | Error
}

export interface Evidence {
  sessions: SessionEvidence[]
  /** Containers too many, while the servers were still up and had had their time to clear them up. */
  strays: { id: string; state: string; instance: string }[]
  /** All taken after the servers were told to stop. */
  records: SessionRecord[]
  instances: string[]
}

export function violations(evidence: Evidence): string[] {
  return [...evidence.sessions.flatMap(ofSession), ...ofContainers(evidence), ...ofLeases(evidence)]
}

function ofSession(session: SessionEvidence): string[] {
  const { sessionId } = session.journal
  const found = [...ofLog(session), ...ofMessages(session), ...ofRewinds(session), ...ofCalls(session)]
  return [...found, ...ofEffects(session)].map((sentence) => `${sessionId}: ${sentence}`)
}

function ofLog({ events }: SessionEvidence): string[] {
  return events.flatMap(({ seq }, index) => (seq === index + 1 ? [] : [`event ${index + 1} has the number ${seq}.`]))
}

function ofMessages({ journal, events }: SessionEvidence): string[] {
  const stored = events.filter(({ type }) => type === 'user:message').map(({ data }) => String(data.text))
  const lost = journal.accepted.filter((text) => !stored.includes(text))
  const twice = stored.filter((text, index) => stored.indexOf(text) !== index)
  return [
    ...lost.map((text) => `"${text}" was accepted and is in no transcript.`),
    ...twice.map((text) => `"${text}" is in the transcript more than once.`)
  ]
}

/** What was taken back is crossed out, stays in the log, and nothing of it is in the conversation that goes on. */
function ofRewinds({ journal, events }: SessionEvidence): string[] {
  const { entries } = (events as SessionEvent[]).reduce(applyEvent, emptyTranscript())
  const rewinds = events.filter(({ type }) => type === 'history:rewound')
  const isKept = ({ seq, kind, rewound }: TranscriptEntry) =>
    !rewound &&
    (kind === 'user' || kind === 'agent' || kind === 'call') &&
    rewinds.some((rewind) => seq >= Number(rewind.data.from) && seq < rewind.seq)
  return [
    ...journal.rewound
      .filter((from) => !rewinds.some(({ data }) => data.from === from))
      .map((from) => `taking back the message ${from} was accepted and is not in the log.`),
    ...entries.filter(isKept).map(({ seq }) => `the entry ${seq} was taken back and is not crossed out.`)
  ]
}

function ofCalls({ journal, events }: SessionEvidence): string[] {
  const found: string[] = []
  const decided = new Map<string, boolean>()
  const seen = new Set<string>()
  for (const { type, data } of events) {
    const callId = String(data.callId)
    if (!type.startsWith('tool:') || data.callId === undefined) continue
    if (seen.has(`${type} ${callId}`)) found.push(`the call ${callId} has two events ${type}.`)
    seen.add(`${type} ${callId}`)
    if (type === 'tool:approval_resolved') decided.set(callId, data.approved === true)
    if (type === 'tool:started' && decided.get(callId) !== true) found.push(`the call ${callId} began without a yes.`)
  }
  for (const [callId, approved] of journal.decided) {
    if (decided.get(callId) !== approved)
      found.push(`the answer to ${callId} was accepted and the log says something else.`)
  }
  const open = [...seen].filter((key) => key.startsWith('tool:started ') && !seen.has(key.replace('started', 'result')))
  return [...found, ...open.map((key) => `the call ${key.split(' ')[1]} began and never ended.`)]
}

function ofEffects({ events, effects }: SessionEvidence): string[] {
  if (effects instanceof Error) return [effects.message]
  const commands = new Map<string, string>()
  const started = new Set<string>()
  const succeeded = new Set<string>()
  for (const { type, data } of events) {
    const callId = String(data.callId)
    const marker = JSON.stringify(data.args ?? '').match(MARKER)?.[0]
    if (type === 'tool:approval_required' && marker) commands.set(callId, marker)
    const known = commands.get(callId)
    if (known === undefined) continue
    if (type === 'tool:started') started.add(known)
    const isKept = data.isError === false && data.outcome === undefined && !UNSAVED.test(JSON.stringify(data.content))
    if (type === 'tool:result' && isKept) succeeded.add(known)
  }
  const counts = Map.groupBy(effects, (marker) => marker)
  return [
    ...[...counts].flatMap(([marker, { length }]) => (length > 1 ? [`${marker} ran ${length} times.`] : [])),
    ...[...counts.keys()].filter((marker) => !started.has(marker)).map((marker) => `${marker} ran without a yes.`),
    ...[...succeeded].filter((marker) => !counts.has(marker)).map((marker) => `${marker} succeeded and left nothing.`)
  ]
}

function ofContainers({ records, strays }: Evidence): string[] {
  const bound = Map.groupBy(
    records.filter(({ containerId }) => containerId !== null),
    ({ containerId }) => String(containerId)
  )
  return [
    ...strays.map(
      ({ id, state, instance }) =>
        `The container ${id.slice(0, 12)} (${state}, made by ${instance}) belongs to no session.`
    ),
    ...[...bound].flatMap(([id, { length }]) =>
      length > 1 ? [`The container ${id.slice(0, 12)} belongs to ${length} sessions.`] : []
    )
  ]
}

function ofLeases({ records, instances }: Evidence): string[] {
  return [
    ...instances.map((id) => `The instance ${id} has gone and is still said to be there.`),
    ...records
      .filter(({ holder }) => holder !== null)
      .map(({ sessionId, holder }) => `${sessionId} is still held by ${holder}, which has gone.`)
  ]
}
