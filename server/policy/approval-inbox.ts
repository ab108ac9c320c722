/**
 * Calls of outside clients that wait for a person at the web page. Lives in the shared store, because the gateway that asks and
 * the server that shows the page may be two processes. Owns the cards and their answers; not who may see them.
 * Invariant: a card has one outcome, and the first to write it decides: an answer, or the asker's withdrawal.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { ApprovalAnswer, ApprovalCard } from '../../contract/rest.ts'
import { AppError, isAppError } from '../lib/errors.ts'
import { isRecord } from '../lib/is-record.ts'
import type { Json, KeyValueStore } from '../storage/key-value-store.ts'

const CARDS = 'approval-cards'
const OUTCOMES = 'approval-outcomes'
const PAGES = 'approval-pages'
/** A card whose asker has not been heard of for so long is nobody's any more. */
const LEASE_MS = 15_000
const RENEW_MS = 4000
const POLL_MS = 250
const BEAT_MS = 5000
/** Outcomes stay a while, so that a late answer is told what happened. */
const KEEP_MS = 10 * 60_000
const MAX_CARDS = 100
const MAX_CARD_CHARS = 500_000

export type Wish = Omit<ApprovalCard, 'id' | 'createdAt' | 'expiresAt'>
type Outcome = { at: number } & ({ withdrawn: true } | (ApprovalAnswer & { withdrawn?: false }))

export class ApprovalInbox {
  readonly #keyValues: KeyValueStore
  readonly #id = randomUUID()
  #beat: NodeJS.Timeout | undefined

  constructor(keyValues: KeyValueStore) {
    this.#keyValues = keyValues
  }

  /** Says, until `leave`, that there is a page where cards are seen. */
  attend(): void {
    const beat = () => this.#keyValues.set(PAGES, this.#id, Date.now()).catch(() => {})
    void beat()
    this.#beat ??= setInterval(beat, BEAT_MS).unref()
  }

  async leave(): Promise<void> {
    clearInterval(this.#beat)
    await this.#keyValues.remove(PAGES, this.#id).catch(() => {})
  }

  async isAttended(): Promise<boolean> {
    const pages = await this.#keyValues.list(PAGES)
    const gone = pages.filter(({ value }) => Number(value) < Date.now() - KEEP_MS)
    for (const { key } of gone) await this.#keyValues.remove(PAGES, key)
    return pages.some(({ value }) => Number(value) > Date.now() - LEASE_MS)
  }

  /** Puts a card up and waits. Rejects with `approval_timeout`, or as the signal says; the card is gone then. */
  async ask(wish: Wish, waitMs: number, signal: AbortSignal): Promise<ApprovalAnswer> {
    const createdAt = Date.now()
    const card: ApprovalCard = { ...wish, id: randomUUID(), createdAt, expiresAt: createdAt + waitMs }
    await this.#refuseTooMuch(card)
    let renewAt = 0
    try {
      while (!signal.aborted && Date.now() < card.expiresAt) {
        if (Date.now() >= renewAt) {
          await this.#keyValues.set(CARDS, card.id, toJson({ card, aliveUntil: Date.now() + LEASE_MS }))
          renewAt = Date.now() + RENEW_MS
        }
        const outcome = await this.#outcome(card.id)
        if (outcome) return read(outcome)
        await delay(POLL_MS, undefined, { signal }).catch(() => {})
      }
      const outcome = await this.#withdraw(card.id)
      if (signal.aborted) throw cancelled(signal.reason)
      if (outcome) return read(outcome)
      throw new AppError('timeout', 'approval_timeout', `Nobody answered within ${waitMs / 1000} s; it was not run.`)
    } finally {
      await this.#withdraw(card.id).catch(() => {})
      await this.#keyValues.remove(CARDS, card.id).catch(() => {})
    }
  }

  /** Those that someone still waits for, oldest first. */
  async open(): Promise<ApprovalCard[]> {
    const cards: ApprovalCard[] = []
    for (const { key, value } of await this.#keyValues.list(CARDS)) {
      const card = readCard(value)
      if (!card) await this.#keyValues.remove(CARDS, key)
      else if (!(await this.#outcome(key))) cards.push(card)
    }
    await this.#sweep()
    return cards.sort((a, b) => a.createdAt - b.createdAt)
  }

  /** `hash` is that of the card the person has seen. */
  async answer(id: string, hash: string, answer: ApprovalAnswer): Promise<void> {
    const card = readCard(await this.#keyValues.get(CARDS, id))
    const outcome = await this.#outcome(id)
    if (outcome && outcome.withdrawn !== true) throw alreadyDecided()
    if (!card || outcome) throw gone()
    if (card.hash !== hash) {
      throw new AppError('conflict', 'stale', 'This answer is for another card than the one that is open; look again.')
    }
    if (await this.#keyValues.add(OUTCOMES, id, toJson({ ...answer, at: Date.now() }))) return
    throw (await this.#outcome(id))?.withdrawn === true ? gone() : alreadyDecided()
  }

  /** Resolves to the answer that came first, if one did. */
  async #withdraw(id: string): Promise<Outcome | undefined> {
    if (await this.#keyValues.add(OUTCOMES, id, { withdrawn: true, at: Date.now() })) return undefined
    const outcome = await this.#outcome(id)
    return outcome?.withdrawn === true ? undefined : outcome
  }

  async #outcome(id: string): Promise<Outcome | undefined> {
    const value = await this.#keyValues.get(OUTCOMES, id)
    return isRecord(value) ? (value as Outcome) : undefined
  }

  async #refuseTooMuch(card: ApprovalCard): Promise<void> {
    if (JSON.stringify(card).length > MAX_CARD_CHARS) {
      const message = `${card.server}/${card.tool} needs a human's yes, and is too long to be shown to one: if its definition changed, look at it with \`servers accept\`.`
      throw new AppError('invalid', 'approval_too_long', message)
    }
    if ((await this.open()).length < MAX_CARDS) return
    const message = `${MAX_CARDS} calls wait for a human's answer already: answer those in the web page's inbox first.`
    throw new AppError('unavailable', 'approvals_full', message)
  }

  async #sweep(): Promise<void> {
    for (const { key, value } of await this.#keyValues.list(OUTCOMES)) {
      if (!isRecord(value) || Number(value.at) < Date.now() - KEEP_MS) await this.#keyValues.remove(OUTCOMES, key)
    }
  }
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

/** What lies in the store was written by this program, perhaps by another version of it. */
function isCard(value: unknown): value is ApprovalCard {
  if (!isRecord(value) || !isRecord(value.args)) return false
  const texts = [value.id, value.hash, value.server, value.tool]
  return texts.every((text) => typeof text === 'string') && typeof value.expiresAt === 'number'
}

/** Its client has given up: that is no fault of ours, and nothing has been run. */
function cancelled(reason: unknown): AppError {
  if (isAppError(reason)) return reason
  return new AppError('cancelled', 'cancelled', 'The call was cancelled before anyone answered; it was not run.')
}

function gone(): AppError {
  return new AppError('not-found', 'approval_gone', 'Nobody waits for this answer any more; nothing was run.')
}

function alreadyDecided(): AppError {
  return new AppError('conflict', 'already_decided', 'Somebody has answered this already.')
}

function toJson(value: unknown): Json {
  return JSON.parse(JSON.stringify(value))
}
