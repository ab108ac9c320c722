/** The invariants that must hold after every walk. Pure functions: they read the evidence and describe each violation in a sentence. */
import type { SessionEvent } from '../../contract/events.ts'
import { applyEvent, emptyTranscript, type TranscriptEntry } from '../../contract/transcript.ts'
import type { StoredEvent } from '../../server/storage/event-log.ts'
import type { SessionRecord } from '../../server/storage/session-store.ts'
import { type Journal, MARKER } from './worker.ts'

/** A sandbox that is lost between the end of a command and the saving of its files. The person is told, so the loss is not silent. */
const UNSAVED = /could not be saved/

export interface SessionEvidence {
  journal: Journal
  events: StoredEvent[]
  /** The marks that its commands have left in its files, or why nobody could look. */
  effects: string[] | Error
  /** The logs of the sessions that were branched off. */
  branches: StoredEvent[][]
}

export interface Evidence {
  sessions: SessionEvidence[]
  /** Containers that were too many while the servers were still up, although they had enough time to remove them. */
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
  found.push(...ofUploads(session))
  return [...found, ...ofBranches(session), ...ofEffects(session)].map((sentence) => `${sessionId}: ${sentence}`)
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

function ofUploads({ journal, events }: SessionEvidence): string[] {
  const recorded = new Set(events.flatMap(uploadsIn))
  const lost = journal.uploaded.filter((marker) => !recorded.has(marker))
  return lost.map((marker) => `the upload of ${marker} was accepted and is not in the log.`)
}

/** The marks that the person has put there, as the log tells it. */
function uploadsIn({ type, data }: StoredEvent): string[] {
  if (type !== 'session:notice') return []
  const files = (data.files ?? []) as { path: string }[]
  return files.flatMap(({ path }) => path.match(MARKER)?.[0] ?? [])
}

/** Entries that were taken back are crossed out and stay in the log, and the conversation continues without them. */
function ofRewinds({ journal, events }: SessionEvidence): string[] {
  const { entries } = (events as SessionEvent[]).reduce(applyEvent, emptyTranscript())
  const all = events.filter(({ type }) => type === 'history:rewound')
  const undone = new Set(events.flatMap(({ type, data }) => (type === 'history:restored' ? [Number(data.of)] : [])))
  const rewinds = all.filter(({ seq }) => !undone.has(seq))
  const isKept = ({ seq, kind, rewound }: TranscriptEntry) =>
    !rewound &&
    (kind === 'user' || kind === 'agent' || kind === 'call') &&
    rewinds.some((rewind) => seq >= Number(rewind.data.from) && seq < rewind.seq)
  return [
    ...journal.rewound
      .filter((from) => !all.some(({ data }) => data.from === from))
      .map((from) => `taking back the message ${from} was accepted and is not in the log.`),
    ...entries.filter(isKept).map(({ seq }) => `the entry ${seq} was taken back and is not crossed out.`)
  ]
}

function ofCalls({ journal, events }: SessionEvidence): string[] {
  const found: string[] = []
  const decided = new Map<string, boolean>()
  const seen = new Set<string>()
  const again = new Set<string>()
  for (const { type, data } of events) {
    const callId = String(data.callId)
    if (!type.startsWith('tool:') || data.callId === undefined) continue
    // A call that could not run, or be kept, in a fork is asked about again, and then each event may come once more.
    if (type === 'tool:approval_required' && data.again) again.add(callId)
    if (seen.has(`${type} ${callId}`) && !again.has(callId)) found.push(`the call ${callId} has two events ${type}.`)
    seen.add(`${type} ${callId}`)
    if (type === 'tool:approval_resolved') decided.set(callId, data.approved === true)
    if (type === 'tool:started' && decided.get(callId) !== true)
      found.push(`the call ${callId} began without an approval.`)
  }
  for (const [callId, approved] of journal.decided) {
    if (decided.get(callId) !== approved && !again.has(callId))
      found.push(`the answer to ${callId} was accepted and the log says something else.`)
  }
  const open = [...seen].filter((key) => key.startsWith('tool:started ') && !seen.has(key.replace('started', 'result')))
  return [...found, ...open.map((key) => `the call ${key.split(' ')[1]} began and never ended.`)]
}

/** The entries of the log about the mark of one command. */
interface Mark {
  /** It may be in the workspace: it ran there after an approval, was kept, or was accepted in a review. */
  mayBe: boolean
  /** It runs in a fork for a review. */
  isForked: boolean
  /** Whether it must be there. Undefined if nobody can know. */
  isThere: boolean | undefined
}

/** Reads the log in its order: calls and uploads leave marks, reviews bring those of a fork, and undoing takes them away. */
function marksOf({ journal, events }: Pick<SessionEvidence, 'journal' | 'events'>): Map<string, Mark> {
  const uploads = journal.tried.map((marker) => [marker, { mayBe: true, isForked: false, isThere: undefined }] as const)
  const marks = new Map<string, Mark>(uploads)
  const byCall = new Map<string, Mark>()
  for (const event of events) {
    const { type, data } = event
    for (const marker of uploadsIn(event)) Object.assign(marks.get(marker) ?? {}, { isThere: true })
    const name = JSON.stringify(data.args ?? '').match(MARKER)?.[0]
    if (type === 'tool:approval_required' && name !== undefined && !byCall.has(String(data.callId))) {
      const mark: Mark = { mayBe: false, isForked: false, isThere: false }
      marks.set(name, mark)
      byCall.set(String(data.callId), mark)
    }
    const mark = byCall.get(String(data.callId))
    if (mark && type === 'tool:approval_required') mark.isForked = data.ahead === 'review'
    if (mark && type === 'tool:started' && !mark.isForked) Object.assign(mark, { mayBe: true, isThere: undefined })
    if (mark && type === 'tool:result' && !mark.isForked && isDone(data)) mark.isThere = true
    if (type !== 'review:applied' && type !== 'files:reverted') continue
    for (const { path, after } of filesIn(data)) {
      const known = marks.get(path.match(MARKER)?.[0] ?? '')
      if (known) Object.assign(known, { mayBe: true, isThere: after !== undefined })
    }
  }
  return marks
}

function isDone({ outcome, content, ending }: StoredEvent['data']): boolean {
  const { exitCode } = (ending ?? {}) as { exitCode?: number | null }
  return exitCode === 0 && outcome === undefined && !UNSAVED.test(JSON.stringify(content))
}

function filesIn({ changes }: StoredEvent['data']): { path: string; after?: unknown }[] {
  return (changes as { files?: { path: string; after?: unknown }[] } | undefined)?.files ?? []
}

function ofEffects({ journal, events, effects }: SessionEvidence): string[] {
  if (effects instanceof Error) return [effects.message]
  const marks = marksOf({ journal, events })
  const counts = Map.groupBy(effects, (marker) => marker)
  const rejected = [...counts.keys()].filter((marker) => marker.endsWith('-no'))
  return [
    ...[...counts].flatMap(([marker, { length }]) => (length > 1 ? [`${marker} ran ${length} times.`] : [])),
    ...rejected.map((marker) => `${marker} was rejected and is in the workspace.`),
    ...[...counts.keys()].flatMap((marker) => {
      const { mayBe = false, isForked = false, isThere } = marks.get(marker) ?? {}
      if (!mayBe) return [`${marker} ran without ${isForked ? 'a review' : 'an approval'}.`]
      return isThere === false ? [`${marker} was undone and is still there.`] : []
    }),
    ...[...marks].flatMap(([marker, { isThere }]) =>
      isThere && !counts.has(marker) ? [`${marker} succeeded and left nothing.`] : []
    )
  ]
}

/** Nothing in a branch waits or runs. */
function ofBranches({ branches }: SessionEvidence): string[] {
  return branches.flatMap((events) => {
    const { turnId, review, calls } = (events as SessionEvent[]).reduce(applyEvent, emptyTranscript())
    const open = Object.values(calls).filter(({ decision, result }) => !decision || (decision.approved && !result))
    return [
      ...(events.some(({ data }) => data.code === 'branched') ? [] : ['a branch is not complete.']),
      ...(turnId === null && review === null ? [] : ['a turn or a review is open in a branch.']),
      ...open.map(({ callId }) => `the call ${callId} is open in a branch.`)
    ]
  })
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

function ofLeases({ records, instances, sessions }: Evidence): string[] {
  // Nobody opens the branches, also those that were never finished, so nobody takes them over from a server that was killed.
  const opened = new Set(sessions.map(({ journal }) => journal.sessionId))
  return [
    ...instances.map((id) => `The instance ${id} is gone and still counts as alive.`),
    ...records
      .filter(({ sessionId, holder }) => holder !== null && opened.has(sessionId))
      .map(({ sessionId, holder }) => `${sessionId} is still held by ${holder}, which is gone.`)
  ]
}
