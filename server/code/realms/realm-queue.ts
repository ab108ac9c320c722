/**
 * Lets a program wait for a place for its container. Owns the queue of this process, not the places. Invariant: a place is given
 * back when its container has stopped, or could not be started.
 */
import { AppError, isAppError } from '../../lib/errors.ts'
import type { RealmProcess } from './code-channel.ts'

/** Takes a place and returns how to give it back. Throws `unavailable` if there is none now. */
export type ReserveRealm = (owner: string) => Promise<() => void>

export interface RealmRequest {
  signal: AbortSignal
  owner: string
  /** Called if the program has to wait. */
  onQueued?(reason: string): void
}

interface QueueTimes {
  waitMs: number
  lookMs: number
}

const MAX_WAITING = 100

export class RealmQueue {
  readonly #reserve: ReserveRealm
  readonly #times: QueueTimes
  readonly #waiting = new Set<() => void>()

  constructor(reserve: ReserveRealm, times: Partial<QueueTimes> = {}) {
    this.#reserve = reserve
    this.#times = { waitMs: 120_000, lookMs: 1000, ...times }
  }

  /** Throws the reason if there is no place in time. */
  async open({ signal, owner, onQueued }: RealmRequest, start: () => Promise<RealmProcess>): Promise<RealmProcess> {
    const until = performance.now() + this.#times.waitMs
    let leave: (() => void) | undefined
    for (let isTold = false; leave === undefined; isTold = true) {
      leave = await this.#reserve(owner).catch((error: unknown) => {
        const mayWait = isAppError(error) && error.kind === 'unavailable' && performance.now() < until
        if (!mayWait || this.#waiting.size >= MAX_WAITING) throw error
        if (!isTold) onQueued?.(`The program waits for a sandbox. ${error.message}`)
        return undefined
      })
      if (leave === undefined) await this.#next(signal)
    }
    const release = () => {
      leave()
      for (const look of this.#waiting) look()
    }
    try {
      const realm = await start()
      return { ...realm, stop: () => realm.stop().finally(release) }
    } catch (error) {
      release()
      throw error
    }
  }

  /** Waits until a place may be free. Other instances give theirs back too, so it looks again after a while. */
  async #next(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, this.#times.lookMs)
    this.#waiting.add(resolve)
    signal.addEventListener('abort', () => resolve(), { once: true })
    try {
      if (!signal.aborted) await promise
      signal.throwIfAborted()
    } finally {
      clearTimeout(timer)
      this.#waiting.delete(resolve)
    }
  }
}

/** The places of a process that has no sandboxes of sessions. */
export function localPlaces(max: number): ReserveRealm {
  let taken = 0
  return async () => {
    if (taken >= max) {
      const message = `All ${max} sandboxes for programs are in use; try again in a minute.`
      throw new AppError('unavailable', 'too_many_programs', message)
    }
    taken++
    let isOver = false
    return () => {
      if (!isOver) taken--
      isOver = true
    }
  }
}
