/** Sessions as their owner sees them in a list: their titles, their states, and how they are deleted. */
import type { SessionState } from '../../../contract/live.ts'
import type { SessionSummary, SessionsReply } from '../../../contract/rest.ts'
import { headOf } from '../../lib/cut-text.ts'
import { AppError, isAppError, messageOf } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import { backoffMs } from '../../lib/waiting/backoff.ts'
import type { EventLog } from '../../storage/event-log.ts'
import type { SessionRecord, SessionStore } from '../../storage/session-store.ts'
import type { OpenOptions, Proof, SessionAccess, SessionMeta } from '../access/session-access.ts'
import { digestOf, SessionDigests } from '../access/session-digests.ts'
import type { Chat } from '../chat/chat.ts'
import type { SessionFeed } from '../feed/session-feed.ts'
import type { SessionManager } from '../sandboxes/session-manager.ts'

export interface SessionDirectoryDeps {
  access: SessionAccess
  sessions: Pick<SessionManager, 'hold' | 'state' | 'destroy' | 'openIds' | 'releaseLost'>
  chat: Chat
  store: SessionStore
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
  /** Only sessions with calls that need approval. */
  waiting?: boolean | undefined
}

const TITLE_CHARS = 60
/** The list shows this for a session without a title, so a search finds it too. */
const UNTITLED = 'New session'
const PATIENCE_MS = 5000

export class SessionDirectory {
  readonly #deps: SessionDirectoryDeps
  readonly #digests: SessionDigests

  constructor(deps: SessionDirectoryDeps) {
    this.#deps = deps
    this.#digests = new SessionDigests(deps.events, (sessionId) => deps.chat.transcript(sessionId))
    deps.feed.subscribe({
      stored: (sessionId, events) => {
        const first = events.find(({ type, data }) => type === 'user:message' && data.turnId === 't1')
        if (first) void this.#nameAfter(sessionId, String(first.data.text)).catch(() => {})
      },
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

  rename(sessionId: string, title: string): Promise<void> {
    return this.#deps.access.rename(sessionId, title)
  }

  /** Reads only the sessions on the page, unless waiting ones are requested: reading hundreds of conversations takes a second. */
  async list(owner: string, { limit, before, title, waiting }: ListQuery): Promise<SessionsReply> {
    const named = (await this.#deps.access.list(owner)).filter(titled(title))
    const { metas, waitingCalls } = waiting ? await this.#waiting(named) : { metas: named, waitingCalls: undefined }
    const found = await Promise.all(
      metas.map(async (meta) => ({ meta, place: placeOf(meta, await this.#deps.store.get(meta.sessionId)) }))
    )
    found.sort((a, b) => (a.place < b.place ? 1 : -1))
    const rest = before === undefined ? found : found.filter(({ place }) => place < before)
    const shown = rest.slice(0, limit)
    const sessions = await Promise.all(shown.map(({ meta }) => this.#summarize(meta)))
    const next = rest.length > limit ? (shown.at(-1)?.place ?? null) : null
    const sorted = sessions.toSorted((a, b) => b.activeAt - a.activeAt)
    return { sessions: sorted, next, total: metas.length, ...(waitingCalls !== undefined && { waitingCalls }) }
  }

  async #waiting(all: SessionMeta[]): Promise<{ metas: SessionMeta[]; waitingCalls: number }> {
    const calls = await Promise.all(all.map(async (meta) => (await this.#digests.of(meta)).pendingApprovals))
    return { metas: all.filter((_, at) => (calls[at] ?? 0) > 0), waitingCalls: calls.reduce((sum, of) => sum + of, 0) }
  }

  async ids(owner: string): Promise<string[]> {
    return (await this.#deps.access.list(owner)).map(({ sessionId }) => sessionId)
  }

  async summary(sessionId: string): Promise<SessionSummary> {
    const meta = await this.#deps.access.meta(sessionId)
    if (!meta) throw new AppError('not-found', 'unknown_session', 'There is no such session.')
    return this.#summarize(meta)
  }

  async state(sessionId: string): Promise<SessionState> {
    const { store, chat } = this.#deps
    const record = await store.get(sessionId)
    // A conversation in memory needs no queueing.
    const usedSandbox = record?.containerId ? true : digestOf(await chat.transcript(sessionId)).usedSandbox
    return this.#stateOf(sessionId, record, usedSandbox)
  }

  /** Deletes container, files, conversation and ownership for good. */
  async destroy(sessionId: string): Promise<void> {
    const { chat, sessions, access, feed } = this.#deps
    await chat.end(sessionId)
    await this.#withRetries(() => sessions.destroy(sessionId))
    await access.forget(sessionId)
    feed.gone(sessionId)
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
    const { sessionId, title, createdAt } = meta
    const [digest, record] = await Promise.all([this.#digests.of(meta), this.#deps.store.get(sessionId)])
    const { model, lastAt, pendingApprovals, usedSandbox } = digest
    const { sandbox, recycleInMs } = await this.#stateOf(sessionId, record, usedSandbox)
    return {
      sessionId,
      title: title || UNTITLED,
      model,
      createdAt,
      activeAt: lastAt ?? createdAt,
      sandbox: sandbox === 'starting' ? 'running' : sandbox,
      recycleInMs,
      pendingApprovals
    }
  }

  async #nameAfter(sessionId: string, text: string): Promise<void> {
    const meta = await this.#deps.access.meta(sessionId)
    const line = text.trim().split('\n')[0] ?? ''
    if (meta?.title === '') await this.#deps.access.rename(sessionId, headOf(line, TITLE_CHARS))
  }
}

/** The position in the list, by last activity; `before` takes it. Digits are padded, so that the texts compare like numbers. */
function placeOf({ sessionId, createdAt }: SessionMeta, record: SessionRecord | null): string {
  return `${String(Math.max(createdAt, record?.activeAt ?? 0)).padStart(15, '0')}_${sessionId}`
}

function titled(text = ''): (meta: SessionMeta) => boolean {
  const wanted = comparable(text)
  return ({ title }) => comparable(title || UNTITLED).includes(wanted)
}

const comparable = (text: string) => text.normalize('NFKC').toLowerCase().trim()
