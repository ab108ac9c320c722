/**
 * The versions of a session's files and the change sets that wait for a decision, for a person to look at. It reads the files as
 * last saved, so it needs neither the sandbox nor the session's lease, and changes nothing.
 */
import type {
  ChangeSide,
  ChangesReply,
  RevertPlanReply,
  Version,
  VersionsReply
} from '../../../contract/effects/effect-replies.ts'
import { AppError } from '../../lib/errors.ts'
import type { Checkpoint, StoredChangeSet } from '../../storage/checkpoint-store.ts'
import { filesOf, hashOf, renamedFrom, summaryOf } from '../changes/changed-files.ts'
import { conflictsOf } from '../changes/plan-changes.ts'
import { planRevert, type RevertScope, unknownVersion } from '../changes/revert-plan.ts'
import type { SessionManager } from '../sandboxes/session-manager.ts'
import { readStored } from './saved-files.ts'
import type { OpenedFile } from './workspace-archive.ts'

const PAGE_VERSIONS = 50
const CHUNK_BYTES = 1024 * 1024

export class WorkspaceHistory {
  readonly #sessions: Pick<SessionManager, 'openSaved'>

  constructor(sessions: Pick<SessionManager, 'openSaved'>) {
    this.#sessions = sessions
  }

  /** A page of versions, the newest first. With `path`, only those that changed this file, also under its earlier names. */
  versions(sessionId: string, { before, path }: { before?: string; path?: string } = {}): Promise<VersionsReply> {
    return this.#read(sessionId, async ({ changeSets, isThinned }) => {
      const all = [...changeSets.values()].filter(({ kind }) => kind === 'version').reverse()
      const start = before === undefined ? 0 : all.findIndex(({ id }) => id === before) + 1
      if (before !== undefined && start === 0) throw unknownVersion()
      const ofFile = path === undefined ? undefined : versionsOf(all, path)
      const later = all.slice(start).filter((version) => !ofFile || ofFile.has(version))
      const versions = later.slice(0, PAGE_VERSIONS).map(asVersion)
      return { versions, isThinned, hasMore: later.length > PAGE_VERSIONS }
    })
  }

  /** All files of a change set. Those of an open one are compared with the workspace. */
  changes(sessionId: string, changeId: string): Promise<ChangesReply> {
    return this.#read(sessionId, async (saved) => {
      const { kind, changes } = setOf(saved, changeId)
      const conflicts = kind === 'open' ? conflictsOf(saved.entries, changes) : undefined
      return { changeId, hash: hashOf(changes), files: filesOf(changes, conflicts) }
    })
  }

  revertPlan(sessionId: string, changeId: string, scope: RevertScope): Promise<RevertPlanReply> {
    return this.#read(sessionId, async (saved) => {
      const { hash, files } = planRevert(saved, changeId, scope)
      return { hash, files }
    })
  }

  /** The content of a file before or after a change. Of a renamed file, `before` is what it was at its old path. */
  content(sessionId: string, changeId: string, path: string, side: ChangeSide): Promise<OpenedFile> {
    return this.#read(sessionId, async (saved) => {
      const { changes } = setOf(saved, changeId)
      const change = changes.find((each) => each.path === path)
      const entry = (side === 'before' && renamedFrom(changes).get(path)?.before) || change?.[side]
      if (entry?.type === 'file') return readStored(saved, entry, CHUNK_BYTES)
      throw new AppError('not-found', 'file_refused', 'This change has no such file.')
    })
  }

  async #read<T>(sessionId: string, job: (saved: Checkpoint) => Promise<T>): Promise<T> {
    const saved = await this.#sessions.openSaved(sessionId, { brief: true })
    try {
      return await job(saved)
    } finally {
      await saved.close() // what is being read stays open
    }
  }
}

/** The versions that changed a file, the newest first. Before a version that renamed it, it has its earlier name. */
function versionsOf(newestFirst: readonly StoredChangeSet[], path: string): Set<StoredChangeSet> {
  let name = path
  const found = new Set<StoredChangeSet>()
  for (const version of newestFirst) {
    const change = version.changes.find((each) => each.path === name)
    if (!change) continue
    found.add(version)
    if (!change.before) name = renamedFrom(version.changes).get(name)?.path ?? name
  }
  return found
}

function asVersion(set: StoredChangeSet): Version {
  return { ...summaryOf(set), at: set.at, about: set.about }
}

function setOf({ changeSets }: Checkpoint, changeId: string): StoredChangeSet {
  const set = changeSets.get(changeId)
  if (!set) throw unknownVersion()
  return set
}
