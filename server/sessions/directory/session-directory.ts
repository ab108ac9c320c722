/** Sessions as their owner sees them in a list: their titles, their states, and how they are deleted. */
import type { SessionState } from '../../../contract/live.ts'
import type { SessionDetails, SessionSummary, SessionsReply } from '../../../contract/rest.ts'
import { headOf } from '../../lib/cut-text.ts'
import { AppError, isAppError, messageOf } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import { normalForm } from '../../lib/normal-form.ts'
import { backoffMs } from '../../lib/waiting/backoff.ts'
import type { EventLog, StoredEvent } from '../../storage/event-log.ts'
import type { KeyValueStore } from '../../storage/key-value-store.ts'
import type { SessionRecord, SessionStore } from '../../storage/session-store.ts'
import type { OpenOptions, Proof, SessionAccess } from '../access/session-access.ts'
import { type Digest, digestOf, SessionDigests } from '../access/session-digests.ts'
import type { SessionMeta } from '../access/stored-meta.ts'
import type { Chat } from '../chat/chat.ts'
import type { SessionFeed } from '../feed/session-feed.ts'
import type { SessionManager } from '../sandboxes/session-manager.ts'
import { DeletedSessions } from './deleted-sessions.ts'

export interface SessionDirectoryDeps {
  access: SessionAccess
  sessions: Pick<SessionManager, 'hold' | 'state' | 'destroy' | 'openIds' | 'releaseLost'>
  chat: Chat
  store: SessionStore
  keyValues: Pick<KeyValueStore, 'set' | 'remove' | 'list'>
  events: Pick<EventLog, 'lastSeq'>
  feed: SessionFeed
  logger: Logger
  idleMs: number
  network: string
}

export interface ListQuery {
  limit: number
  before?: string | undefined
  /** Only sessions with this text in their title, ignoring case. */
  title?: string | undefined
  /** Only sessions with something that waits for the person: calls, questions of servers, or a review. */
  waiting?: boolean | undefined
  /** Only archived sessions, or only others; both if it is left out. */
  archived?: boolean | undefined
}

/** The fields of a session that a person can change in the list. */
export interface SessionChange {
  title?: string
  isPinned?: boolean
  isArchived?: boolean
}

const TITLE_CHARS = 60
/** The list shows this for a session without a title, so a search finds it too. */
const UNTITLED = 'New session'
const PATIENCE_MS = 5000
/** Added to the time in the position of a pinned session. */
const PINNED = 10 ** 14
const USES = new Set(['user:message', 'agent:response', 'tool:approval_required', 'history:reset'])

export class SessionDirectory {
  readonly #deps: SessionDirectoryDeps
  readonly #digests: SessionDigests
  readonly deleted: DeletedSessions

  constructor(deps: SessionDirectoryDeps) {
    this.#deps = deps
    this.#digests = new SessionDigests(deps.events, (sessionId) => deps.chat.transcript(sessionId))
    const { access, keyValues, store, logger } = deps
    const destroy = (sessionId: string) => this.destroy(sessionId)
    this.deleted = new DeletedSessions({ access, keyValues, now: () => store.now(), destroy, logger })
    deps.feed.subscribe({
      stored: (sessionId, events) => void this.#onStored(sessionId, events).catch(() => {}),
      gone: (sessionId) => void deps.chat.forget(sessionId).catch(() => {}),
      emptied: () => void this.#releaseLost().catch(() => {})
    })
  }

  async open(sessionId: string, proof: Proof, options: OpenOptions): Promise<{ token?: string }> {
    const opened = await this.#deps.access.open(sessionId, proof, options)
    // From now on the janitor knows the session, so that it is removed in time even if nobody ever enters it.
    await this.#deps.sessions.hold(sessionId, async () => {})
    return opened
  }

  check(sessionId: string, proof: Proof): Promise<void> {
    return this.#deps.access.check(sessionId, proof)
  }

  checkDeleted(sessionId: string, proof: Proof): Promise<void> {
    return this.#deps.access.checkDeleted(sessionId, proof)
  }

  async change(sessionId: string, { title, ...marks }: SessionChange): Promise<void> {
    const { access, feed } = this.#deps
    if (title !== undefined) await access.rename(sessionId, title)
    await access.mark(sessionId, marks)
    feed.changed(sessionId)
  }

  /** Reads only the sessions on the page, unless waiting ones are requested: reading hundreds of conversations takes a second. */
  async list(owner: string, query: ListQuery): Promise<SessionsReply> {
    const { limit, before, title, waiting, archived } = query
    const isWanted = ({ archivedAt, isDeleted }: SessionMeta) =>
      !isDeleted && (archived === undefined || archived === (archivedAt !== null))
    const named = (await this.#deps.access.list(owner)).filter(isWanted).filter(titled(title))
    const { metas, waitingCalls } = waiting ? await this.#waiting(named) : { metas: named, waitingCalls: undefined }
    const found = await Promise.all(metas.map(async (meta) => ({ meta, place: await this.#placeOf(meta) })))
    found.sort((a, b) => (a.place < b.place ? 1 : -1))
    const rest = before === undefined ? found : found.filter(({ place }) => place < before)
    const shown = rest.slice(0, limit)
    const sessions = await Promise.all(shown.map(({ meta }) => this.#summarize(meta)))
    const next = rest.length > limit ? (shown.at(-1)?.place ?? null) : null
    const sorted = sessions.toSorted((a, b) => Number(b.isPinned) - Number(a.isPinned) || b.activeAt - a.activeAt)
    return { sessions: sorted, next, total: metas.length, ...(waitingCalls !== undefined && { waitingCalls }) }
  }

  async #waiting(all: SessionMeta[]): Promise<{ metas: SessionMeta[]; waitingCalls: number }> {
    const digests = await Promise.all(all.map((meta) => this.#digests.of(meta)))
    const metas = all.filter((_, at) => digests[at] && isWaiting(digests[at]))
    return { metas, waitingCalls: digests.reduce((sum, { pendingApprovals }) => sum + pendingApprovals, 0) }
  }

  async ids(owner: string): Promise<string[]> {
    return (await this.#deps.access.list(owner)).map(({ sessionId }) => sessionId)
  }

  async summary(sessionId: string): Promise<SessionDetails> {
    const { access, chat } = this.#deps
    const meta = await access.meta(sessionId)
    if (!meta) throw new AppError('not-found', 'unknown_session', 'There is no such session.')
    const { usage, contextTokens } = await chat.transcript(sessionId)
    return { ...(await this.#summarize(meta)), usage, contextTokens }
  }

  async state(sessionId: string): Promise<SessionState> {
    const { store, chat } = this.#deps
    const record = await store.get(sessionId)
    // A conversation in memory needs no queueing.
    const usedSandbox = record?.containerId ? true : digestOf(await chat.transcript(sessionId)).usedSandbox
    return this.#stateOf(sessionId, record, usedSandbox)
  }

  /** Hides it from everyone; it is deleted for good a moment later, unless its owner brings it back before. */
  async hide(sessionId: string): Promise<void> {
    await this.deleted.add(sessionId)
    this.#deps.feed.revoked(sessionId)
    this.#deps.feed.changed(sessionId)
  }

  async restore(sessionId: string): Promise<void> {
    await this.deleted.restore(sessionId)
    this.#deps.feed.changed(sessionId)
  }

  /** Deletes container, files, conversation and ownership for good. */
  async destroy(sessionId: string): Promise<void> {
    const { chat, sessions, access, feed } = this.#deps
    await chat.end(sessionId)
    await this.#withRetries(() => sessions.destroy(sessionId))
    feed.gone(sessionId, await access.forget(sessionId))
  }

  /** Releases conversations and sandboxes that are open here although the store no longer knows them. */
  async #releaseLost(): Promise<void> {
    const { access, chat, sessions, feed } = this.#deps
    const isOpen = new Set(chat.openIds)
    const lost: string[] = []
    for (const sessionId of new Set([...isOpen, ...sessions.openIds])) {
      if (await access.meta(sessionId)) continue
      lost.push(sessionId)
      if (!isOpen.has(sessionId)) continue
      feed.lost(sessionId)
      await chat.forget(sessionId)
    }
    await Promise.all(lost.map((sessionId) => this.#release(sessionId)))
  }

  async #release(sessionId: string): Promise<void> {
    const { sessions, logger } = this.#deps
    try {
      await this.#withRetries(() => sessions.releaseLost(sessionId))
      logger.info({ sessionId }, 'Released the rest of a session that the store has lost.')
    } catch (error) {
      const message = `The sandbox of a lost session stays until it is idle: ${messageOf(error)}`
      logger.warn({ err: error, sessionId }, message)
    }
  }

  /** Another instance that ran the turn hears of its end within a second, and releases it. */
  async #withRetries(job: () => Promise<void>): Promise<void> {
    const until = Date.now() + PATIENCE_MS
    for (let attempt = 1; ; attempt++) {
      try {
        return await job()
      } catch (error) {
        if (!isAppError(error, 'session_busy') || Date.now() > until) throw error
        await new Promise((resolve) => setTimeout(resolve, backoffMs(attempt, { firstMs: 50, maxMs: 500 })))
      }
    }
  }

  async #stateOf(sessionId: string, record: SessionRecord | null, usedSandbox: boolean): Promise<SessionState> {
    const { sessions, store, idleMs, network } = this.#deps
    if (!record?.containerId) return { sandbox: usedSandbox ? 'recycled' : 'none', recycleInMs: null, network }
    const here = sessions.state(sessionId)
    const recycleInMs = Math.max(0, record.activeAt + idleMs - (await store.now()))
    return { sandbox: here === 'none' ? 'running' : here, recycleInMs, network }
  }

  async #summarize(meta: SessionMeta): Promise<SessionSummary> {
    const { sessionId, title, createdAt, pinnedAt, archivedAt, isDeleted } = meta
    const [digest, record] = await Promise.all([this.#digests.of(meta), this.#deps.store.get(sessionId)])
    const { model, lastAt, pendingApprovals, waiting, questions, review, usedSandbox } = digest
    const { sandbox, recycleInMs } = await this.#stateOf(sessionId, record, usedSandbox)
    return {
      sessionId,
      title: title || UNTITLED,
      model,
      createdAt,
      activeAt: lastAt ?? createdAt,
      sandbox: sandbox === 'starting' ? 'running' : sandbox,
      recycleInMs,
      pendingApprovals,
      ...(waiting.length > 0 && { waiting }),
      ...(questions.length > 0 && { questions }),
      ...(review && { review }),
      isPinned: pinnedAt !== null,
      isArchived: archivedAt !== null,
      ...(isDeleted && { isDeleted: true as const })
    }
  }

  async #onStored(sessionId: string, events: StoredEvent[]): Promise<void> {
    const { access, feed } = this.#deps
    const first = events.find(({ type, data }) => type === 'user:message' && data.turnId === 't1')
    if (first) await access.rename(sessionId, firstWords(first.data), 'words')
    // Writing in an archived session brings it back.
    if (events.some(({ type }) => type === 'user:message')) await access.mark(sessionId, { isArchived: false })
    const used = events.findLast(isUse)
    if (used) await access.noteUse(sessionId, used.at)
    feed.changed(sessionId)
  }

  /**
   * The position in the list; `before` takes it. Digits are padded, so that the texts compare like numbers. The time at which the
   * store last saw work in the session is only for sessions of earlier versions: a restart of the server changes it.
   */
  async #placeOf({ sessionId, createdAt, usedAt, pinnedAt }: SessionMeta): Promise<string> {
    const at = usedAt ?? Math.max(createdAt, (await this.#deps.store.get(sessionId))?.activeAt ?? 0)
    return `${String((pinnedAt === null ? 0 : PINNED) + at).padStart(15, '0')}_${sessionId}`
  }
}

function isWaiting({ pendingApprovals, questions, review }: Digest): boolean {
  return pendingApprovals > 0 || questions.length > 0 || review !== null
}

/** A message may consist of files only. */
function firstWords({ text, attachments = [] }: { text?: unknown; attachments?: unknown }): string {
  const [file] = attachments as { name: string }[]
  return headOf((String(text).trim() || (file?.name ?? '')).split('\n')[0] ?? '', TITLE_CHARS)
}

/** Whether a person, the model or a tool did something. What a restart writes into the log does not count. */
function isUse({ type, data }: StoredEvent): boolean {
  if (type === 'tool:approval_resolved') return data.by !== 'cancel'
  if (type === 'tool:result') return data.interruptedBy !== 'server'
  return USES.has(type)
}

function titled(text = ''): (meta: SessionMeta) => boolean {
  const wanted = comparable(text)
  return ({ title }) => comparable(title || UNTITLED).includes(wanted)
}

const comparable = (text: string) => normalForm(text, 'NFKC').toLowerCase().trim()
