/** Random actions of a person in the approval modes, and the invariants of the files afterwards. */
import { createHash } from 'node:crypto'
import type { ChangedFile } from '../../contract/effects/change-set.ts'
import { APPROVAL_MODES } from '../../contract/effects/modes.ts'
import type { SessionEvent } from '../../contract/events.ts'
import type { CallEntry, Transcript } from '../../contract/transcript.ts'
import { hashOf } from '../../server/sessions/changes/changed-files.ts'
import { WorkspaceHistory } from '../../server/sessions/files/workspace-history.ts'
import { type Checkpoint, isSameEntry, type StoredChangeSet } from '../../server/storage/checkpoint-store.ts'
import type { Random } from '../chaos/random.ts'
import type { House } from './house.ts'
import { FILES } from './vendor-mind.ts'

type Send = (
  command: 'mode:select' | 'tool:approval' | 'review:decide' | 'files:revert',
  input: unknown
) => Promise<string | undefined>

export class Effects {
  /** Contents that the person has uploaded, as far as that was acknowledged. */
  readonly uploaded: string[] = []
  readonly #house: House
  readonly #id: string
  readonly #random: Random
  readonly #history: WorkspaceHistory
  #count = 0

  constructor(house: House, id: string, random: Random) {
    this.#house = house
    this.#id = id
    this.#random = random
    this.#history = new WorkspaceHistory({ openSaved: (sessionId) => house.saved(sessionId) })
  }

  selectMode(send: Send): Promise<string | undefined> {
    return send('mode:select', { mode: this.#random.pick(APPROVAL_MODES) })
  }

  async upload(at: number): Promise<string | undefined> {
    const content = `uploaded ${this.#id} ${++this.#count}`
    const refusal = await this.#house.upload(at, this.#id, this.#random.pick(FILES), content)
    if (refusal === undefined) this.uploaded.push(content)
    return refusal
  }

  /** Keeps or approves a call, with a choice for every conflict. */
  async approve(send: Send, call: CallEntry | undefined, more: object = {}): Promise<string | undefined> {
    const changeId = call?.preview?.changes.total ? `call:${call.callId}` : undefined
    const chosen = changeId === undefined ? {} : await this.#choices(changeId)
    const hash = call?.preview?.hash ?? call?.hash
    return send('tool:approval', { callId: call?.callId ?? 'none', hash, approved: true, ...chosen, ...more })
  }

  async review(send: Send, { review }: Transcript, accept?: 'none'): Promise<string | undefined> {
    if (!review) return 'no review'
    const { reviewId, changes } = review
    const files = await this.#filesOf(changes.changeId)
    const some = files.filter(() => this.#random.chance(0.5)).map(({ path }) => path)
    const accepted = accept ?? this.#random.pick(['all', 'all', 'none', some, { allExcept: some }])
    const chosen = await this.#choices(changes.changeId)
    const comment = this.#random.chance(0.3) ? { comment: 'Why 🧭 \ud83e?' } : {}
    return send('review:decide', { reviewId, hash: changes.hash, accept: accepted, ...chosen, ...comment })
  }

  async revert(send: Send): Promise<string | undefined> {
    const { versions } = await this.#history.versions(this.#id)
    if (versions.length === 0) return 'no version'
    const { changeId } = this.#random.pick(versions)
    const scope = this.#random.pick(['one', 'since'] as const)
    const { hash, files } = await this.#history.revertPlan(this.#id, changeId, scope)
    const some = this.#random.chance(0.3) ? { paths: files.slice(0, 1).map(({ path }) => path) } : {}
    const { choices } = this.#chosen(files)
    return send('files:revert', { changeId, scope, hash, choices, ...some })
  }

  async #choices(changeId: string) {
    // Sometimes nothing is chosen, and sometimes for a version that nobody was shown.
    if (this.#random.chance(0.1)) return {}
    const chosen = this.#chosen(await this.#filesOf(changeId))
    if (this.#random.chance(0.1)) await this.upload(this.#random.pick([0, 1]))
    return chosen
  }

  #chosen(files: ChangedFile[]) {
    const conflicts = files.flatMap(({ path, conflict }) => (conflict ? [{ path, seen: conflict.seen }] : []))
    return {
      choices: Object.fromEntries(conflicts.map(({ path }) => [path, this.#random.pick(['fork', 'workspace'])])),
      seenConflicts: Object.fromEntries(conflicts.map(({ path, seen }) => [path, seen]))
    }
  }

  async #filesOf(changeId: string): Promise<ChangedFile[]> {
    return this.#history.changes(this.#id, changeId).then(
      ({ files }) => files,
      () => []
    )
  }
}

interface Evidence {
  log: SessionEvent[]
  transcript: Transcript
  saved: Checkpoint
  /** The files in the session's container. */
  files: ReadonlyMap<string, string>
  strays: number
  uploaded: string[]
}

/** Says in sentences what does not hold. */
export function brokenEffects({ log, transcript, saved, files, strays, uploaded }: Evidence): string[] {
  const versions = [...saved.changeSets.values()].filter(({ kind }) => kind === 'version')
  const contents = new Set(
    versions.flatMap(({ changes }) => changes.flatMap(({ before, after }) => [hashIn(before), hashIn(after)]))
  )
  const stored = new Map([...saved.entries].map(([path, entry]) => [path, hashIn(entry)]))
  const there = new Map([...files].map(([path, text]) => [path, sha(text)]))
  const isSame = stored.size === there.size && [...stored].every(([path, hash]) => there.get(path) === hash)
  return [
    ...(strays > 0 ? [`${strays} containers belong to nobody`] : []),
    ...(isSame ? [] : [`the container has ${JSON.stringify([...files])}, and saved is ${JSON.stringify([...stored])}`]),
    ...openSets(saved, transcript),
    ...brokenChain(versions, saved),
    ...uploaded.filter((text) => !contents.has(sha(text))).map((text) => `"${text}" is in no version`),
    ...Object.values(transcript.calls).flatMap((call) => brokenCall(call, saved, contents)),
    ...told(log, versions, saved)
  ]
}

/** A discarded preview is removed when its sandbox is used again, so the last one may be left. */
function openSets({ changeSets }: Checkpoint, { calls }: Transcript): string[] {
  const open = [...changeSets.values()].filter(({ kind }) => kind === 'open').map(({ id }) => id)
  const isLeft = (id: string) => id.startsWith('call:') && calls[id.slice(5)]?.decision?.approved === false
  const others = open.filter((id) => !isLeft(id)).map((id) => `the changes ${id} are still open`)
  return open.length > 1 ? [...others, `several change sets are open: ${open.join(', ')}`] : others
}

/** The versions in their order lead to the files. A repeated apply names what was there already. */
function brokenChain(versions: StoredChangeSet[], saved: Checkpoint): string[] {
  const state: Map<string, StoredChangeSet['changes'][number]['after']> = new Map()
  const broken: string[] = []
  for (const { id, changes } of versions)
    for (const { path, before, after } of changes) {
      const now = state.get(path) ?? null
      if (!isSameEntry(now, before) && !isSameEntry(now, after))
        broken.push(`the version ${id} does not follow at ${path}`)
      state.set(path, after)
    }
  for (const path of new Set([...state.keys(), ...saved.entries.keys()]))
    if (!isSameEntry(state.get(path) ?? null, saved.entries.get(path) ?? null))
      broken.push(`no version explains ${path}`)
  return broken
}

/** Discarded changes are nowhere. Kept changes are in the workspace once, and the log says so. */
function brokenCall(call: CallEntry, saved: Checkpoint, contents: ReadonlySet<string | undefined>): string[] {
  const { callId, ahead, preview, decision, result, args, name } = call
  if (name !== 'write_file' || (decision?.editedArgs ?? args) !== args) return []
  const isThere = contents.has(sha(String(args.content)))
  if (!decision?.approved) return isThere ? [`the call ${callId} was not approved and is in the files`] : []
  if (ahead !== 'preview' || !preview) return []
  const version = saved.changeSets.get(`call:${callId}`)
  if (!result) return [`the call ${callId} was kept and has no result`]
  const hash = version && hashOf(version.changes)
  return result.changes?.hash === hash
    ? []
    : [`the call ${callId} says ${result.changes?.hash}, and its version is ${hash}`]
}

/** Every version that a decision made is in the log, and every one that the log names exists. */
function told(log: SessionEvent[], versions: StoredChangeSet[], saved: Checkpoint): string[] {
  const named = log.flatMap(({ type, data }) => {
    if (type === 'files:reverted' || type === 'review:applied') return data.changes ? [data.changes.changeId] : []
    return type === 'tool:result' && data.changes && !data.isForked ? [data.changes.changeId] : []
  })
  const decided = versions.filter(({ about }) => about.by === 'review' || about.by === 'revert')
  const twice = named.filter((id, at) => named.indexOf(id) !== at)
  return [
    ...named
      .filter((id) => saved.changeSets.get(id)?.kind !== 'version')
      .map((id) => `the version ${id} is in the log only`),
    ...decided.filter(({ id }) => !named.includes(id)).map(({ id }) => `nobody was told of the version ${id}`),
    ...twice.map((id) => `the version ${id} was told twice`)
  ]
}

function hashIn(entry: StoredChangeSet['changes'][number]['after']): string | undefined {
  return entry?.type === 'file' ? entry.hash : undefined
}

const sha = (text: string) => createHash('sha256').update(text).digest('hex')
