/**
 * Deletes objects that nothing names any more. One instance at a time does this. An object goes only if it was found unnamed twice, a day
 * apart; nothing goes while the session store does not answer, or is not the one that the bucket belongs to. In doubt it keeps.
 */
import { BoundedMap } from '../../lib/bounded-map.ts'
import { isRecord } from '../../lib/is-record.ts'
import type { Logger } from '../../lib/logger.ts'
import type { FileHeads } from '../file-heads.ts'
import { type KeyValueStore, takeTurn } from '../key-value-store.ts'
import { contentOf, type ObjectStore } from '../objects/object-store.ts'
import type { SessionStore } from '../session-store.ts'
import { readMarker } from './claim-bucket.ts'
import { ContentSums } from './content-sums.ts'
import { readObject } from './object-cache.ts'
import { decodeHead, loadState } from './object-manifest.ts'
import { parseKey, parseName, sessionFolder } from './object-names.ts'

export interface CollectorDeps {
  objects: ObjectStore
  prefix: string
  heads: FileHeads
  keyValues: Pick<KeyValueStore, 'get' | 'add' | 'replace' | 'remove' | 'list'>
  sessions: Pick<SessionStore, 'now' | 'origin' | 'deploymentId' | 'list'>
  /** Ids of all sessions that have an owner. */
  sessionIds: () => Promise<Iterable<string>>
  /** Tells which of these contents the logs of a session name. */
  namedContents: (sessionId: string, hashes: ReadonlySet<string>) => Promise<Set<string>>
  instanceId: string
  logger: Logger
}

export interface Collected {
  /** Why nothing was looked at. */
  refused?: 'busy' | 'wrong store'
  unnamed: number
  deleted: number
  /** The limit was reached, and there is room again: another round would find more. */
  isMore?: true
}

const NOTES = 'collector.json'
const MAX_NOTES_BYTES = 64 * 1024 * 1024
const MAX_SUSPECTS = 100_000
const DAY_MS = 86_400_000
const MAX_ROUND_MS = 3_600_000
const SPACE = 'object-collector'
const KNOWN_NAMED = 20_000

export class Collector {
  readonly #deps: CollectorDeps
  /** Folders and hashes of contents that a log names. Nothing is taken out of a log, so it need not be read again. */
  readonly #named = new BoundedMap<string, true>(KNOWN_NAMED)

  constructor(deps: CollectorDeps) {
    this.#deps = deps
  }

  async round(): Promise<Collected> {
    const { logger } = this.#deps
    if (!(await takeTurn(this.#deps, SPACE, MAX_ROUND_MS))) return { refused: 'busy', unnamed: 0, deleted: 0 }
    if (!(await this.#isOurStore())) {
      logger.warn('Objects are not deleted: the bucket belongs to another session store, or this one was emptied.')
      return { refused: 'wrong store', unnamed: 0, deleted: 0 }
    }
    const now = await this.#deps.sessions.now()
    const known = await this.#readNotes()
    const unnamed = await this.#findUnnamed()
    const due = unnamed.filter((key) => now - (known.get(key) ?? now) >= DAY_MS)
    // The store may have been emptied while we were looking.
    const deleted = new Set((await this.#isOurStore()) ? await this.#remove(due) : [])
    for (const key of deleted) known.delete(key)
    await this.#writeNotes(
      new Map(unnamed.filter((key) => !deleted.has(key)).map((key) => [key, known.get(key) ?? now]))
    )
    await this.#endUploads()
    if (unnamed.length >= MAX_SUSPECTS) {
      logger.warn(`More than ${MAX_SUSPECTS} objects can be deleted. The others wait for later rounds.`)
    }
    if (deleted.size > 0) logger.info({ objects: deleted.size }, 'Objects that nothing names were deleted.')
    const isMore = unnamed.length >= MAX_SUSPECTS && deleted.size > 0
    return { unnamed: unnamed.length, deleted: deleted.size, ...(isMore && { isMore }) }
  }

  async #isOurStore(): Promise<boolean> {
    const { objects, prefix, sessions } = this.#deps
    const marker = await readMarker(objects, prefix)
    return marker?.id === (await sessions.deploymentId()) && marker.origin === (await sessions.origin()).id
  }

  /** Objects older than a day that no session names. What a head begins to name meanwhile is younger. */
  async #findUnnamed(): Promise<string[]> {
    const { prefix, heads } = this.#deps
    const byFolder = new Map<string, string>()
    for (const [sessionId, head] of await heads.list()) byFolder.set(sessionFolder(prefix, sessionId), head)
    const sums = new ContentSums(this.#deps.keyValues)
    const counted = await sums.all()
    const alive = await this.#livingFolders()
    const unnamed: string[] = []
    for await (const { folder, names, contents } of this.#foldersOfObjects()) {
      if (alive.has(folder)) await sums.correct(folder, counted.get(folder), bytesOf(contents))
      counted.delete(folder)
      if (names.length === 0) continue
      const isContent = (name: string) => name.endsWith('.content')
      const named = await this.#namesOf(folder, byFolder.get(folder))
      if (named !== 'all')
        for (const name of names) if (!isContent(name) && !named.has(name)) unnamed.push(folder + name)
      for (const name of await this.#unnamedContents(folder, alive.get(folder), names.filter(isContent)))
        unnamed.push(folder + name)
      if (unnamed.length >= MAX_SUSPECTS) return unnamed
    }
    for (const [folder, bytes] of counted) {
      await (alive.has(folder) ? sums.correct(folder, bytes, 0) : sums.remove(folder))
    }
    return unnamed
  }

  /** The service lists keys in their order, so only one folder is in memory at a time. */
  async *#foldersOfObjects(): AsyncIterable<ObjectFolder> {
    const { objects, prefix } = this.#deps
    let inside: ObjectFolder | undefined
    for (let from: string | undefined; ; ) {
      const { found, next, now } = await objects.list(`${prefix}sessions/`, from)
      for (const object of found) {
        const place = parseKey(prefix, object.key)
        if (!place) continue
        if (place.folder !== inside?.folder) {
          if (inside) yield inside
          inside = { folder: place.folder, names: [], contents: new Map() }
        }
        const { kind, hash, bytes } = parseName(place.name) ?? {}
        if (kind === 'content' && hash !== undefined) inside.contents.set(hash, bytes ?? 0)
        if (now - object.modifiedAt >= DAY_MS) inside.names.push(place.name)
      }
      from = next
      if (from === undefined) break
    }
    if (inside) yield inside
  }

  /** By folder: the sessions that still exist. Their conversations may name content. */
  async #livingFolders(): Promise<Map<string, string>> {
    const { sessions, sessionIds, prefix } = this.#deps
    const records = (await sessions.list()).map(({ sessionId }) => sessionId)
    return new Map([...records, ...(await sessionIds())].map((id) => [sessionFolder(prefix, id), id]))
  }

  async #unnamedContents(folder: string, sessionId: string | undefined, names: string[]): Promise<string[]> {
    if (sessionId === undefined) return names
    const hashOf = (name: string) => parseName(name)?.hash ?? ''
    const isKnown = (name: string) => this.#named.has(folder + hashOf(name))
    const unknown = new Set(names.filter((name) => !isKnown(name)).map(hashOf))
    if (unknown.size === 0) return []
    try {
      const named = await this.#deps.namedContents(sessionId, unknown)
      for (const hash of named) this.#named.set(folder + hash, true)
      return names.filter((name) => unknown.has(hashOf(name)) && !named.has(hashOf(name)))
    } catch (error) {
      this.#deps.logger.warn({ err: error, folder }, 'Content of a session is kept: its log could not be read.')
      return []
    }
  }

  /** All names that count in a folder. `all` if that can't be told. */
  async #namesOf(folder: string, stored: string | undefined): Promise<Set<string> | 'all'> {
    if (stored === undefined) return new Set()
    try {
      const head = decodeHead(stored)
      // Not from the cache, which is for the sessions of this instance.
      const { state } = await loadState({ readAll: (key) => readObject(this.#deps.objects, key) }, folder, head)
      return new Set([head.base, ...(head.tail === undefined ? [] : [head.tail]), ...state.packUse().keys()])
    } catch (error) {
      this.#deps.logger.warn({ err: error, folder }, 'Objects of a session are kept: its manifest could not be read.')
      return 'all'
    }
  }

  async #remove(keys: readonly string[]): Promise<string[]> {
    if (keys.length > 0) await this.#deps.objects.remove(keys)
    return [...keys]
  }

  /** Nobody continues an upload after a day. */
  async #endUploads(): Promise<void> {
    const { objects, prefix } = this.#deps
    for (let from: string | undefined; ; ) {
      const { found, next, now } = await objects.listUploads(`${prefix}sessions/`, from)
      for (const upload of found) if (now - upload.startedAt >= 2 * DAY_MS) await objects.abortUpload(upload)
      from = next
      if (from === undefined) return
    }
  }

  /** When each unnamed object was first seen as such. */
  async #readNotes(): Promise<Map<string, number>> {
    const { objects, prefix } = this.#deps
    const found = await objects.read(prefix + NOTES, 0, MAX_NOTES_BYTES)
    const notes = found ? parsed(found.bytes.toString()) : {}
    const seen = isRecord(notes) && isRecord(notes.seen) ? notes.seen : {}
    return new Map(Object.entries(seen).flatMap(([key, at]) => (typeof at === 'number' ? [[key, at]] : [])))
  }

  async #writeNotes(seen: ReadonlyMap<string, number>): Promise<void> {
    const { objects, prefix } = this.#deps
    const bytes = Buffer.from(JSON.stringify({ v: 1, seen: Object.fromEntries(seen) }))
    await objects.put(prefix + NOTES, contentOf(bytes))
  }
}

interface ObjectFolder {
  folder: string
  /** The names of objects that are older than a day. */
  names: string[]
  /** The size of each content, by its hash. */
  contents: Map<string, number>
}

function bytesOf(contents: ReadonlyMap<string, number>): number {
  return [...contents.values()].reduce((sum, bytes) => sum + bytes, 0)
}

/** Without notes, an object only waits a day longer. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}
