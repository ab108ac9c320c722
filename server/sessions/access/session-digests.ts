import { setImmediate as othersTurn } from 'node:timers/promises'
import { WORKSPACE } from '../../../contract/own-sources.ts'
import type { WaitingCall, WaitingQuestion } from '../../../contract/rest.ts'
import { type CallEntry, openQuestions, pendingCalls, type Transcript } from '../../../contract/transcript.ts'
import { BoundedMap } from '../../lib/bounded-map.ts'
import { headOf } from '../../lib/cut-text.ts'
import { KeyedLock } from '../../lib/waiting/keyed-lock.ts'
import type { EventLog } from '../../storage/event-log.ts'
import type { SessionMeta } from './stored-meta.ts'

/** The fields of a conversation that the session list shows. */
export interface Digest {
  seq: number
  model: string | null
  /** When a person, the model or a tool last did something; null: never. What a restart writes into the log does not count. */
  lastAt: number | null
  /** Whether a call ran in a sandbox; those on MCP servers need none. */
  usedSandbox: boolean
  pendingApprovals: number
  /** The first of the calls that need approval. */
  waiting: WaitingCall[]
  questions: WaitingQuestion[]
  review: { reviewId: string; files: number } | null
}

const MAX_KNOWN = 5000
const MAX_WAITING = 20
const MAX_QUESTIONS = 100
const MAX_ARGS = 10
const MAX_ARG_CHARS = 300

/**
 * Summaries of conversations, cached until the log grows, because pages often list all sessions of their owner. Logs are read
 * one at a time, and other work runs in between: a log can be long, and an owner can have hundreds.
 */
export class SessionDigests {
  readonly #events: Pick<EventLog, 'lastSeq'>
  readonly #transcript: (sessionId: string) => Promise<Transcript>
  readonly #known = new BoundedMap<string, Digest>(MAX_KNOWN)
  readonly #lock = new KeyedLock()

  constructor(events: Pick<EventLog, 'lastSeq'>, transcript: (sessionId: string) => Promise<Transcript>) {
    this.#events = events
    this.#transcript = transcript
  }

  async of({ sessionId, createdAt }: SessionMeta): Promise<Digest> {
    const seq = await this.#events.lastSeq(sessionId)
    // An id can be opened again after its removal, and its log can reach the same length again.
    const key = `${createdAt} ${sessionId}`
    return this.#find(key, seq) ?? this.#lock.run('', () => this.#read(key, sessionId, seq))
  }

  #find(key: string, seq: number): Digest | undefined {
    const known = this.#known.get(key)
    if (known?.seq !== seq) return undefined
    this.#known.set(key, known)
    return known
  }

  async #read(key: string, sessionId: string, seq: number): Promise<Digest> {
    // A concurrent request may have read it before us.
    const known = this.#find(key, seq)
    if (known) return known
    const digest = digestOf(await this.#transcript(sessionId))
    this.#known.set(key, digest)
    await othersTurn()
    return digest
  }
}

export function digestOf(transcript: Transcript): Digest {
  const { seq, model, calls, review } = transcript
  const waiting = pendingCalls(transcript)
  return {
    seq,
    model,
    lastAt: lastActivity(transcript),
    usedSandbox: Object.values(calls).some(({ server, startedAt }) => server === WORKSPACE && startedAt !== undefined),
    pendingApprovals: waiting.length,
    waiting: waiting.slice(0, MAX_WAITING).map(waitingCall),
    questions: openQuestions(transcript)
      .slice(0, MAX_QUESTIONS)
      .map(({ call: { callId, server, name }, question: { id, at } }) => ({ callId, id, server, name, at })),
    review: review && { reviewId: review.reviewId, files: review.changes.total }
  }
}

/** Arguments can be large, and a list shows their beginning only. */
function waitingCall({ callId, server, name, args, requestedAt }: CallEntry): WaitingCall {
  const short = Object.entries(args)
    .slice(0, MAX_ARGS)
    .map(([key, value]) => [headOf(key, MAX_ARG_CHARS), shortArg(value)])
  return { callId, server, name, args: Object.fromEntries(short), requestedAt }
}

function shortArg(value: unknown): unknown {
  if (typeof value === 'string') return value.length > MAX_ARG_CHARS ? `${headOf(value, MAX_ARG_CHARS)}…` : value
  return typeof value === 'object' && value !== null ? '…' : value
}

function lastActivity({ entries, calls }: Transcript): number | null {
  let last: number | null = null
  const note = (at: number) => {
    last = Math.max(last ?? at, at)
  }
  for (const { kind, at } of entries) if (kind !== 'notice' && kind !== 'error') note(at)
  for (const { decision, result } of Object.values(calls)) {
    if (decision && decision.by !== 'cancel') note(decision.at)
    if (result && result.interruptedBy !== 'server') note(result.at)
  }
  return last
}
