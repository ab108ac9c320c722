import { randomUUID } from 'node:crypto'
import type { BranchRequest } from '../../../contract/effects/effect-replies.ts'
import type { SessionSummary } from '../../../contract/rest.ts'
import type { Transcript } from '../../../contract/transcript.ts'
import type { WorkspaceEntry } from '../../../workspace-server/protocol.ts'
import { AppError } from '../../lib/errors.ts'
import type { Checkpoint, CheckpointStore, StoredChangeSet } from '../../storage/checkpoint-store.ts'
import type { EventLog, StoredEvent } from '../../storage/event-log.ts'
import type { Proof } from '../access/session-access.ts'
import type { SessionManager } from '../sandboxes/session-manager.ts'
import { BranchedEvents, filesNamed } from './branched-events.ts'
import type { SessionDirectory } from './session-directory.ts'

interface BranchDeps {
  directory: Pick<SessionDirectory, 'open' | 'change' | 'destroy' | 'summary'>
  sessions: Pick<SessionManager, 'hold' | 'run' | 'state' | 'openSaved'>
  checkpoints: Pick<CheckpointStore, 'open' | 'getContent' | 'putContent'>
  events: Pick<EventLog, 'append' | 'read'>
  transcript: (sessionId: string) => Promise<Transcript>
  /** Throws if the session may not start new work. */
  checkQuota: (sessionId: string) => Promise<void>
}

export type BranchSession = (
  sessionId: string,
  request: BranchRequest,
  who: { proof: Proof; address: string }
) => Promise<SessionSummary & { token?: string }>

/** The limits of one append are higher: 1000 events and some megabytes. */
const EVENTS_AT_ONCE = 20
const CHUNK_BYTES = 1024 * 1024
/** A step of the model with all its calls has fewer events. */
const STEP_EVENTS = 500

/**
 * Opens a new session of the same owner with the conversation before an event, and the files as they are or were then. It belongs to
 * nobody until it is complete: after a crash it is never seen, and expires like a session that nobody uses.
 */
export function sessionBranching(deps: BranchDeps): BranchSession {
  return async (sessionId, { before, files }, { proof, address }) => {
    const { directory, sessions } = deps
    const point = await branchPoint(deps.events, sessionId, before)
    await deps.checkQuota(sessionId)
    const { title } = await directory.summary(sessionId)
    const branchId = randomUUID()
    try {
      await sessions.hold(branchId, async ({ epoch }) => {
        await copyFiles(deps, sessionId, branchId, epoch, files === 'then' ? point : null)
        await copyConversation(deps, sessionId, branchId, point.seq, title)
      })
      const opened = await directory.open(branchId, proof, { address, isCopy: true })
      await directory.change(branchId, { title: `${title || 'New session'} (branch)` })
      return { ...(await directory.summary(branchId)), ...opened }
    } catch (error) {
      await directory.destroy(branchId).catch(() => {})
      throw error
    }
  }
}

/** A step of the model is left out as a whole: its calls belong to one answer. */
async function branchPoint(events: BranchDeps['events'], sessionId: string, before: number): Promise<StoredEvent> {
  const [event] = await events.read(sessionId, { after: before - 1, limit: 1, bareUntil: before })
  if (event?.seq !== before)
    throw new AppError('not-found', 'unknown_entry', 'There is no such entry in this conversation.')
  if (event.type !== 'tool:approval_required') return event
  const after = Math.max(0, before - 1 - STEP_EVENTS)
  const near = await events.read(sessionId, { after, limit: STEP_EVENTS, bareUntil: before })
  return near.findLast(({ type, seq }) => type === 'agent:response' && seq < before) ?? event
}

async function copyConversation(
  { events, checkpoints }: BranchDeps,
  from: string,
  to: string,
  before: number,
  title: string
): Promise<void> {
  const branched = new BranchedEvents()
  const copied = new Set<string>()
  for (let after = 0; after < before - 1; ) {
    const page = await events.read(from, { after, limit: Math.min(EVENTS_AT_ONCE, before - 1 - after) })
    for (const id of page.flatMap(filesNamed)) {
      const bytes = copied.has(id) ? undefined : await checkpoints.getContent(from, id)
      if (bytes) await checkpoints.putContent(to, bytes)
      copied.add(id)
    }
    const part = page.flatMap((event) => branched.take(event))
    // Not published: nobody has it open, and a copied call is no call for the audit log.
    if (part.length > 0) await events.append(to, part)
    const last = page.at(-1)
    if (!last) break
    after = last.seq
  }
  await events.append(to, branched.end(title || 'New session'))
}

async function copyFiles(
  { sessions, checkpoints, transcript }: BranchDeps,
  from: string,
  to: string,
  epoch: number,
  then: StoredEvent | null
): Promise<void> {
  // Changes of processes that still run are not saved yet.
  if (sessions.state(from) !== 'none') await sessions.run(from, (workspace) => workspace.saveFiles())
  const source = await sessions.openSaved(from)
  try {
    const entries = then ? entriesAt(source, madeSince(await transcript(from), then)) : source.entries
    if (entries.size === 0) return
    const target = await checkpoints.open(to, epoch)
    try {
      const known = new Set<string>()
      for (const entry of entries.values()) {
        if (entry.type !== 'file' || known.has(entry.hash)) continue
        known.add(entry.hash)
        await target.addBlob(source.read(entry.hash, CHUNK_BYTES))
      }
      const put = [...entries.values()].sort((a, b) => (a.path < b.path ? -1 : 1))
      await target.commit({ put, deleted: [] })
    } finally {
      await target.close()
    }
  } finally {
    await source.close()
  }
}

/** Whether a version of the files was made at or after an event. */
function madeSince({ entries }: Transcript, { seq, at }: StoredEvent): (version: StoredChangeSet) => boolean {
  const calls = new Map(entries.flatMap((entry) => (entry.kind === 'call' ? [[entry.callId, entry.seq] as const] : [])))
  return ({ about, at: madeAt }) => {
    const asked = about.callId === undefined ? undefined : calls.get(about.callId)
    return asked === undefined ? madeAt >= at : asked >= seq
  }
}

/** The files before the versions that `isSince` names: those are undone, the newest first. */
function entriesAt(
  { entries, changeSets, isThinned }: Pick<Checkpoint, 'entries' | 'changeSets' | 'isThinned'>,
  isSince: (version: StoredChangeSet) => boolean
): ReadonlyMap<string, WorkspaceEntry> {
  const versions = [...changeSets.values()].filter(({ kind }) => kind === 'version').reverse()
  const kept = versions.findIndex((version) => !isSince(version))
  if (kept < 0 && isThinned) {
    const message =
      'The versions of the files from that time were removed to save space. Take the files as they are now.'
    throw new AppError('conflict', 'versions_removed', message)
  }
  const result = new Map(entries)
  for (const { changes } of kept < 0 ? versions : versions.slice(0, kept))
    for (const { path, before } of changes) {
      if (before) result.set(path, before)
      else result.delete(path)
    }
  return result
}
