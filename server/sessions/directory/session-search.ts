/**
 * Finds messages, calls and comments on reviews by their words, in the sessions of one owner. It reads the logs themselves, newest session first, and stops at its
 * limits of time, size and hits: an owner can have a gigabyte of conversations. It keeps nothing in memory.
 */
import { setImmediate as othersTurn } from 'node:timers/promises'
import type { SearchMatch, SearchReply, SessionSummary } from '../../../contract/rest.ts'
import { AppError } from '../../lib/errors.ts'
import { normalForm } from '../../lib/normal-form.ts'
import { KeyedLock } from '../../lib/waiting/keyed-lock.ts'
import type { EventLog, StoredEvent } from '../../storage/event-log.ts'
import type { SessionAccess } from '../access/session-access.ts'
import type { SessionMeta } from '../access/stored-meta.ts'

export interface SearchLimits {
  ms: number
  /** Characters of all messages that are searched. */
  chars: number
  hits: number
}

interface SearchDeps {
  access: Pick<SessionAccess, 'list'>
  events: Pick<EventLog, 'read'>
  summary: (sessionId: string) => Promise<SessionSummary>
  limits?: Partial<SearchLimits>
}

export const MAX_SEARCH_CHARS = 200
const MAX_WORDS = 8
const LIMITS: SearchLimits = { ms: 3000, chars: 64 * 1024 * 1024, hits: 50 }
const MATCHES_PER_SESSION = 3
/** In a search of one session. */
const MATCHES_OF_ONE = 300
const EVENTS_AT_ONCE = 200
const ALL = Number.MAX_SAFE_INTEGER
const FOUND: Record<string, SearchMatch['by']> = {
  'user:message': 'user',
  'agent:response': 'agent',
  'tool:approval_required': 'call',
  'review:resolved': 'review'
}
/** The beginning of a long command is enough. */
const MAX_CALL_CHARS = 10_000
const LONG_TEXT_CHARS = 10_000
const BEFORE_CHARS = 40
const AFTER_CHARS = 100

/** The remaining budget of a search. */
interface Room {
  chars: number
  until: number
}

const isSpent = ({ chars, until }: Room) => chars <= 0 || performance.now() > until

interface Found {
  matches: SearchMatch[]
  total: number
}
const NOTHING: Found = { matches: [], total: 0 }

type Find = (text: string) => Pick<SearchMatch, 'before' | 'match' | 'after'> | undefined

export class SessionSearch {
  readonly #deps: SearchDeps
  readonly #limits: SearchLimits
  readonly #lock = new KeyedLock()

  constructor(deps: SearchDeps) {
    this.#deps = deps
    this.#limits = { ...LIMITS, ...deps.limits }
  }

  /** One search of an owner at a time: a person types faster than a long one ends. */
  find(owner: string, text: string, sessionId?: string): Promise<SearchReply> {
    return this.#lock.run(owner, () => this.#find(owner, finderOf(text), sessionId))
  }

  async #find(owner: string, find: Find, only: string | undefined): Promise<SearchReply> {
    const { ms, chars, hits: mostHits } = this.#limits
    const room: Room = { chars, until: performance.now() + ms }
    const hits: SearchReply['hits'] = []
    let isComplete = true
    for (const meta of (await this.#deps.access.list(owner)).toSorted(newestFirst)) {
      if (meta.isDeleted || (only !== undefined && meta.sessionId !== only)) continue
      // Titles are at hand, so they are searched in any case.
      const most = only === undefined ? MATCHES_PER_SESSION : MATCHES_OF_ONE
      const { matches, total } = isSpent(room) ? NOTHING : await this.#matches(meta.sessionId, find, room, most)
      isComplete &&= !isSpent(room)
      if (matches.length === 0 && !find(meta.title)) continue
      if (hits.length === mostHits) return { hits, isComplete: false }
      hits.push({ summary: await this.#deps.summary(meta.sessionId), matches, total })
    }
    return { hits, isComplete }
  }

  async #matches(sessionId: string, find: Find, room: Room, most: number): Promise<Found> {
    const matches: SearchMatch[] = []
    let total = 0
    const shownAt = new Map<unknown, number>()
    for (let after = 0; !isSpent(room); await othersTurn()) {
      const page = await this.#deps.events.read(sessionId, { after, limit: EVENTS_AT_ONCE, bareUntil: ALL })
      for (const event of page) {
        if (event.type === 'review:opened') shownAt.set(event.data.reviewId, event.seq)
        const by = Object.hasOwn(FOUND, event.type) ? FOUND[event.type] : undefined
        const text = by ? await this.#textOf(sessionId, event) : ''
        room.chars -= text.length
        const found = by && find(text)
        // A decision has no entry of its own: its review has.
        const seq = (by === 'review' && shownAt.get(event.data.reviewId)) || event.seq
        if (found) {
          matches.push({ seq, at: event.at, by, ...found })
          total++
        }
        if (matches.length > most) matches.shift()
        // A long text can take a while: nobody else waits for more than one.
        if (text.length > LONG_TEXT_CHARS) await othersTurn()
        if (isSpent(room)) break
      }
      const last = page.at(-1)
      if (!last) break
      after = last.seq
    }
    return { matches: matches.toReversed(), total }
  }

  /** A long text was left out, because most long texts are results of tools. */
  async #textOf(sessionId: string, event: StoredEvent): Promise<string> {
    const text = textIn(event)
    if (text !== '' || event.type === 'review:resolved') return text
    const [whole] = await this.#deps.events.read(sessionId, { after: event.seq - 1, limit: 1 })
    return whole ? textIn(whole) : ''
  }
}

function textIn({ type, data }: StoredEvent): string {
  if (type !== 'tool:approval_required') return stringOf(type === 'review:resolved' ? data.comment : data.text)
  const { name, args } = data
  if (typeof args !== 'object' || args === null) return ''
  const { command, path } = args as Record<string, unknown>
  const words = [command, path].map(stringOf).filter((word) => word !== '')
  return `${stringOf(name)} ${words.length > 0 ? words.join(' ') : JSON.stringify(args)}`.slice(0, MAX_CALL_CHARS)
}

const stringOf = (value: unknown) => (typeof value === 'string' ? value : '')

function newestFirst(a: SessionMeta, b: SessionMeta): number {
  return (b.usedAt ?? b.createdAt) - (a.usedAt ?? a.createdAt)
}

/** Finds texts with all words in any order, ignoring case and the form in which a character is written. */
function finderOf(text: string): Find {
  const words = normalForm(text, 'NFKC').split(/\s+/u).filter(Boolean)
  if (words.length === 0 || words.length > MAX_WORDS || text.length > MAX_SEARCH_CHARS)
    throw new AppError('invalid', 'invalid_search', `Search for 1 to ${MAX_WORDS} words.`)
  const patterns = words.map((word) => new RegExp(word.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'), 'iu'))
  return (given) => {
    const plain = normalForm(given, 'NFKC')
    const [first, ...rest] = patterns.map((pattern) => pattern.exec(plain))
    if (!first || rest.includes(null)) return undefined
    return snippet(plain, first.index, first[0])
  }
}

function snippet(text: string, at: number, match: string): ReturnType<Find> {
  const end = at + match.length
  const before = text.slice(Math.max(0, at - BEFORE_CHARS), at)
  const after = text.slice(end, end + AFTER_CHARS)
  return {
    before: oneLine(`${at > BEFORE_CHARS ? '…' : ''}${before}`),
    match: oneLine(match),
    after: oneLine(`${after}${text.length > end + AFTER_CHARS ? '…' : ''}`)
  }
}

/** Half a character at either end becomes a replacement sign. */
function oneLine(text: string): string {
  return text.toWellFormed().replace(/\s+/gu, ' ')
}
