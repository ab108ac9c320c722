/**
 * Calls of outside clients that wait for approval in the web page. The cards are in the shared store, because the gateway that
 * asks and the server that shows the page may be two processes. Owns the cards and their answers, not who may see them.
 * Invariant: a card has one outcome, an answer or the caller's withdrawal; the first one written counts.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { ApprovalAnswer, ApprovalCard } from '../../contract/rest.ts'
import { AppError } from '../lib/errors.ts'
import { isRecord } from '../lib/is-record.ts'
import { cancelled } from '../lib/waiting/cancelled.ts'
import { KeyedLock } from '../lib/waiting/keyed-lock.ts'
import type { Json, KeyValueStore } from '../storage/key-value-store.ts'
import {
  type FullFor,
  leavePlace,
  type PlaceHolder,
  renewPlace,
  takePlace,
  type WaitingPlace
} from './waiting-places.ts'

const CARDS = 'approval-cards'
const OUTCOMES = 'approval-outcomes'
const PAGES = 'approval-pages'
/** A card that its process has not renewed for this long is abandoned. */
const LEASE_MS = 15_000
const RENEW_MS = 4000
const POLL_MS = 250
const BEAT_MS = 5000
/** Outcomes are kept for a while, so that a late answer gets a proper error. */
const KEEP_MS = 10 * 60_000
/** The answer to the card of a program is kept this long after the card has expired: no process may be there to read it. */
const KEEP_ANSWER_MS = 7 * 86_400_000
const GAVE_UP = 'The call was cancelled before anyone answered. The tool was not run.'
const STOPPED = 'The server shut down before anyone answered. The tool was not run; try again in a moment.'
const MAX_CARDS = 100
const MAX_CARD_CHARS = 500_000
const FULL: Record<FullFor, string> = {
  run: 'Too many calls of this program already wait for approval. Answer those in the web page, under "Waiting for you", first, or make fewer calls at once.',
  owner:
    'Too many of your own calls already wait for approval. Answer those in the web page, under "Waiting for you", first, or cancel your runs.',
  all: `${MAX_CARDS} calls of all clients already wait for approval. Answer those in the web page, under "Waiting for you", first.`
}

/** The share of places depends on the owner of the call. Nobody is shown it. */
interface Owned {
  owner?: string
}
export type NewCard = Omit<ApprovalCard, 'id' | 'createdAt' | 'expiresAt'> & Owned
export type PostedCard = ApprovalCard & Owned
type Outcome = { at: number } & ({ withdrawn: true } | (ApprovalAnswer & { withdrawn?: false }))

export class ApprovalInbox {
  readonly #keyValues: KeyValueStore
  readonly #id = randomUUID()
  readonly #left = new AbortController()
  /** One caller of an owner at a time takes a place, so that those of this process don't refuse each other. */
  readonly #taking = new KeyedLock()
  #beat: NodeJS.Timeout | undefined

  constructor(keyValues: KeyValueStore) {
    this.#keyValues = keyValues
  }

  /** Announces, until `leave`, that a page shows the cards. */
  attend(): void {
    const beat = () => this.#keyValues.set(PAGES, this.#id, Date.now()).catch(() => {})
    void beat()
    this.#beat ??= setInterval(beat, BEAT_MS).unref()
  }

  /** Also ends the waits of this process, so that its callers still get an answer. */
  async leave(): Promise<void> {
    clearInterval(this.#beat)
    this.#left.abort(new AppError('unavailable', 'shutting_down', STOPPED))
    await this.#keyValues.remove(PAGES, this.#id).catch(() => {})
  }

  async isAttended(): Promise<boolean> {
    const pages = await this.#keyValues.list(PAGES)
    const gone = pages.filter(({ value }) => Number(value) < Date.now() - KEEP_MS)
    for (const { key } of gone) await this.#keyValues.remove(PAGES, key)
    return pages.some(({ value }) => Number(value) > Date.now() - LEASE_MS)
  }

  /**
   * Adds a card and waits for the answer. Rejects with `approval_timeout`, or when the caller's signal aborts or this process leaves;
   * then the card is removed.
   */
  async ask({ owner = '', ...request }: NewCard, waitMs: number, caller: AbortSignal): Promise<ApprovalAnswer> {
    const signal = AbortSignal.any([caller, this.#left.signal])
    const createdAt = Date.now()
    const card: ApprovalCard = { ...request, id: randomUUID(), createdAt, expiresAt: createdAt + waitMs }
    refuseTooLong(card)
    let place: WaitingPlace | undefined
    let renewAt = 0
    try {
      while (!signal.aborted && Date.now() < card.expiresAt) {
        if (Date.now() >= renewAt) {
          place = await this.#keepPlace(card.id, owner, place)
          await this.#keyValues.set(CARDS, card.id, toJson({ card, aliveUntil: Date.now() + LEASE_MS }))
          renewAt = Date.now() + RENEW_MS
        }
        const outcome = await this.#outcome(card.id)
        if (outcome) return read(outcome)
        await delay(POLL_MS, undefined, { signal }).catch(() => {})
      }
      const outcome = await this.#withdraw(card.id)
      if (signal.aborted) throw cancelled(signal.reason, GAVE_UP)
      if (outcome) return read(outcome)
      throw new AppError(
        'timeout',
        'approval_timeout',
        `Nobody answered within ${waitMs / 1000} s. The tool was not run.`
      )
    } finally {
      await this.#withdraw(card.id).catch(() => {})
      await this.#keyValues.remove(CARDS, card.id).catch(() => {})
      if (place) await leavePlace(this.#keyValues, place).catch(() => {})
    }
  }

  /**
   * Adds a card that outlives this process, until it expires or `take` removes it. Posting it again changes nothing. The place must
   * be given back with `take`.
   */
  async post({ owner = '', ...card }: PostedCard, known?: WaitingPlace): Promise<WaitingPlace> {
    refuseTooLong(card)
    const wanted = { holder: card.id, owner, run: card.code?.runId ?? '', until: card.expiresAt }
    const place = known ?? (await this.#takePlace(wanted))
    await this.#keyValues.set(CARDS, card.id, toJson({ card, aliveUntil: card.expiresAt }))
    return place
  }

  /** The answer to a posted card, if there is one. */
  async answerTo(id: string): Promise<ApprovalAnswer | undefined> {
    const outcome = await this.#outcome(id)
    return outcome && outcome.withdrawn !== true ? read(outcome) : undefined
  }

  /** Removes a posted card. Nobody can answer it any more. */
  async take(id: string, place: WaitingPlace): Promise<void> {
    await this.#withdraw(id)
    await this.#keyValues.remove(CARDS, id)
    await leavePlace(this.#keyValues, place)
  }

  /** The cards that a caller still waits for, oldest first. */
  async open(): Promise<ApprovalCard[]> {
    const cards: ApprovalCard[] = []
    for (const { key, value } of await this.#keyValues.list(CARDS)) {
      const card = readCard(value)
      const outcome = await this.#outcome(key)
      if (card && !outcome) cards.push(card)
      else if (!card && !(outcome && isAnswerKept(value, outcome))) await this.#keyValues.remove(CARDS, key)
    }
    await this.#sweep()
    return cards.sort((a, b) => a.createdAt - b.createdAt)
  }

  /** `hash` is the hash of the card that the person saw. */
  async answer(id: string, hash: string, answer: ApprovalAnswer): Promise<void> {
    const card = readCard(await this.#keyValues.get(CARDS, id))
    const outcome = await this.#outcome(id)
    if (outcome && outcome.withdrawn !== true) throw alreadyDecided()
    if (!card || outcome) throw gone()
    if (card.hash !== hash) {
      throw new AppError(
        'conflict',
        'stale',
        'This answer is for an older version of the card. Review the current one and answer again.'
      )
    }
    if (await this.#keyValues.add(OUTCOMES, id, toJson({ ...answer, at: Date.now() }))) return
    throw (await this.#outcome(id))?.withdrawn === true ? gone() : alreadyDecided()
  }

  /** Resolves to the answer, if there already was one. */
  async #withdraw(id: string): Promise<Outcome | undefined> {
    if (await this.#keyValues.add(OUTCOMES, id, { withdrawn: true, at: Date.now() })) return undefined
    const outcome = await this.#outcome(id)
    return outcome?.withdrawn === true ? undefined : outcome
  }

  async #outcome(id: string): Promise<Outcome | undefined> {
    const value = await this.#keyValues.get(OUTCOMES, id)
    return isRecord(value) ? (value as Outcome) : undefined
  }

  async #keepPlace(holder: string, owner: string, known?: WaitingPlace): Promise<WaitingPlace> {
    const until = Date.now() + LEASE_MS
    const kept = known && (await renewPlace(this.#keyValues, known, until))
    return kept ?? this.#takePlace({ holder, owner, run: '', until })
  }

  async #takePlace(wanted: PlaceHolder): Promise<WaitingPlace> {
    const place = await this.#taking.run(wanted.owner, () =>
      takePlace(this.#keyValues, { ...wanted, limit: MAX_CARDS })
    )
    if (typeof place !== 'string') return place
    throw new AppError('unavailable', 'approvals_full', FULL[place])
  }

  async #sweep(): Promise<void> {
    // The answer to a posted card is kept until the run has read it, which may be a day later.
    const cards = new Set((await this.#keyValues.list(CARDS)).map(({ key }) => key))
    for (const { key, value } of await this.#keyValues.list(OUTCOMES)) {
      const isOld = !isRecord(value) || Number(value.at) < Date.now() - KEEP_MS
      if (isOld && !cards.has(key)) await this.#keyValues.remove(OUTCOMES, key)
    }
  }
}

function refuseTooLong(card: ApprovalCard): void {
  if (JSON.stringify(card).length <= MAX_CARD_CHARS) return
  const message = `${card.server}/${card.tool} needs approval, but is too long to show. If its definition changed, review it with \`servers accept\`.`
  throw new AppError('invalid', 'approval_too_long', message)
}

function read({ at: _, withdrawn: __, ...answer }: Outcome): ApprovalAnswer {
  return { approved: false, ...answer }
}

function readCard(value: unknown): ApprovalCard | undefined {
  if (!isRecord(value) || !isRecord(value.card)) return undefined
  const card = value.card as unknown
  const now = Date.now()
  return isCard(card) && Number(value.aliveUntil) > now && card.expiresAt > now ? card : undefined
}

/** Whether the run of this card may still read its answer. */
function isAnswerKept(value: unknown, outcome: Outcome): boolean {
  if (!isRecord(value) || !isRecord(value.card) || outcome.withdrawn === true) return false
  return value.card.code !== undefined && Number(value.card.expiresAt) + KEEP_ANSWER_MS > Date.now()
}

/** Checks the value: another version of this program may have written it. */
function isCard(value: unknown): value is ApprovalCard {
  if (!isRecord(value) || !isRecord(value.args)) return false
  const texts = [value.id, value.hash, value.server, value.tool]
  return texts.every((text) => typeof text === 'string') && typeof value.expiresAt === 'number'
}

function gone(): AppError {
  return new AppError('not-found', 'approval_gone', 'The caller no longer waits for this answer. Nothing was run.')
}

function alreadyDecided(): AppError {
  return new AppError('conflict', 'already_decided', 'Someone has already answered this.')
}

function toJson(value: unknown): Json {
  return JSON.parse(JSON.stringify(value))
}
