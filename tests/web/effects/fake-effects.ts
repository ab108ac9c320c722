/** Approval modes, reviews and versions of the fake server, over change sets that a test writes by hand. */
import { createHash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import {
  type ChangedFile,
  type ChangeSummary,
  type FileSide,
  isChosen,
  MAX_LISTED_FILES
} from '../../../contract/effects/change-set.ts'
import type { Version, VersionAbout } from '../../../contract/effects/effect-replies.ts'
import type { EventData } from '../../../contract/events.ts'
import type { FakeSession } from '../fake-server.ts'

export interface FakeFile {
  path: string
  from?: string
  before?: string | Buffer
  after?: string | Buffer
  mode?: number
  /** The content in the workspace instead of `before`; null if there is no file. */
  now?: string | null
  /** Where `now` is, if not at `path`. */
  at?: string
}

interface FakeSet {
  hash: string
  files: ChangedFile[]
  contents: Map<string, Partial<Record<string, Buffer>>>
  at: number
  about: VersionAbout | null
}

function sideOf(content: string | Buffer, mode = 0o644): FileSide {
  const bytes = Buffer.from(content)
  return { type: 'file', mode, size: bytes.length, hash: createHash('sha256').update(bytes).digest('hex') }
}

function changeOf({ path, from, before, after, mode, now, at }: FakeFile): ChangedFile {
  return {
    path,
    ...(from !== undefined && { from }),
    ...(before !== undefined && { before: sideOf(before) }),
    ...(after !== undefined && { after: sideOf(after, mode) }),
    ...(now !== undefined && {
      conflict: { ...(now !== null && { now: sideOf(now) }), ...(at !== undefined && { at }), seen: `seen-${path}` }
    })
  }
}

export class FakeEffects {
  readonly sets = new Map<string, FakeSet>()
  readonly decisions: Record<string, unknown>[] = []
  /** The requests for content, to see that they are made on demand. */
  readonly loaded: string[] = []
  isThinned = false
  /** How many versions one answer has. */
  pageVersions = 50
  /** Why modes other than `ask` are refused. */
  refusal: string | null = null

  put(changeId: string, files: FakeFile[], about: VersionAbout | null = null): ChangeSummary {
    const changed = files.map(changeOf)
    const hash = createHash('sha256').update(JSON.stringify(changed)).digest('hex')
    const contents = new Map(
      files.map(({ path, before, after }) => [
        path,
        {
          ...(before !== undefined && { before: Buffer.from(before) }),
          ...(after !== undefined && { after: Buffer.from(after) })
        }
      ])
    )
    this.sets.delete(changeId)
    // As on the server, a call that changed nothing has no change set.
    if (files.length > 0)
      this.sets.set(changeId, { hash, files: changed, contents, at: Date.now() + this.sets.size, about })
    return { changeId, hash, total: files.length, files: changed.slice(0, MAX_LISTED_FILES) }
  }

  /** The error of a command that is refused. */
  refuse(command: string, { mode }: Record<string, unknown>): object | undefined {
    if (command !== 'mode:select' || mode === 'ask' || this.refusal === null) return undefined
    return { code: 'mode_unavailable', message: this.refusal }
  }

  handle(session: FakeSession, command: string, input: Record<string, unknown>): void {
    if (command === 'mode:select') session.append('mode:selected', input as EventData<'mode:selected'>)
    if (command === 'review:decide') this.#decide(session, input)
    if (command === 'files:revert') {
      this.decisions.push(input)
      const { changeId, scope } = input as { changeId: string; scope: 'one' | 'since' }
      const about = { by: 'revert' as const, of: changeId, scope }
      const changes = this.put(`revert:${this.sets.size}`, [{ path: 'a.txt', before: 'new', after: 'old' }], about)
      session.append('files:reverted', { of: changeId, scope, changes, by: 'human' })
    }
  }

  #decide(session: FakeSession, input: Record<string, unknown>): void {
    this.decisions.push(input)
    const data = { ...input, by: 'human' } as EventData<'review:resolved'>
    const { review } = session.transcript
    session.append('review:resolved', data)
    const rejected =
      review?.changes.files
        .map(({ path }) => path)
        .filter((path) => !isChosen(data.accept)(path) || data.choices?.[path] === 'workspace') ?? []
    session.append('review:applied', {
      reviewId: data.reviewId,
      ...(review &&
        rejected.length < review.changes.total && {
          changes: { ...review.changes, total: review.changes.total - rejected.length }
        }),
      rejected,
      rejectedTotal: rejected.length
    })
  }

  /** Returns false for requests that are not about changes. */
  serve(response: ServerResponse, { pathname, searchParams }: URL): boolean {
    const [, id, rest] = /^\/api\/sessions\/[^/]+\/changes(?:\/([^/]+)(\/\w+)?)?$/.exec(pathname) ?? []
    if (!/\/changes(\/|$)/.test(pathname)) return false
    const set = this.sets.get(decodeURIComponent(id ?? ''))
    if (id === undefined) reply(response, this.#versions(searchParams.get('path'), searchParams.get('before')))
    else if (!set) response.writeHead(404).end('{}')
    else if (rest === '/content') {
      const [path, side] = [searchParams.get('path') ?? '', searchParams.get('side') ?? '']
      this.loaded.push(`${path} ${side}`)
      response.setHeader('content-type', 'application/octet-stream').end(set.contents.get(path)?.[side])
    } else if (rest === '/revert') {
      const files = set.files.map(({ before, after, ...file }) => ({
        ...file,
        ...(after && { before: after }),
        ...(before && { after: before })
      }))
      reply(response, { hash: `plan ${set.hash}`, files })
    } else reply(response, { changeId: decodeURIComponent(id), hash: set.hash, files: set.files })
    return true
  }

  #versions(path: string | null, before: string | null): object {
    let name = path
    const all = [...this.sets].reverse().flatMap(([changeId, { hash, files, at, about }]): Version[] => {
      const file = files.find((each) => each.path === name)
      if (!about || (path !== null && !file)) return []
      name = file?.from ?? name
      return [{ changeId, hash, total: files.length, files: files.slice(0, 100), at, about }]
    })
    const later = all.slice(all.findIndex(({ changeId }) => changeId === before) + 1)
    const versions = later.slice(0, this.pageVersions)
    return { versions, isThinned: this.isThinned, hasMore: versions.length < later.length }
  }
}

function reply(response: ServerResponse, body: object): void {
  response.setHeader('content-type', 'application/json').end(JSON.stringify(body))
}
