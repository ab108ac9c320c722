/**
 * Decides who gets one of the limited places for live sandboxes. If all are taken, the longest idle sandbox gives up its place
 * after its files were saved, starting with owners above their fair share. A sandbox in which something runs is never taken.
 */
import { AppError, messageOf } from '../../lib/errors.ts'
import { KeyedLock } from '../../lib/waiting/keyed-lock.ts'
import type { SessionRecord } from '../../storage/session-store.ts'
import { leaseLost } from '../../storage/store-errors.ts'
import type { SessionsDeps, SessionsOptions } from './session-options.ts'

const MAX_ATTEMPTS = 10
/** The part of the places that programs can take on an instance. Nobody can take one from a program, as from an idle sandbox. */
const REALMS_PART = 4

export interface SandboxPlacesOptions {
  deps: Pick<SessionsDeps, 'store' | 'ownerOf' | 'logger' | 'instanceId'>
  options: Pick<SessionsOptions, 'maxSessions' | 'maxSandboxesPerOwner'>
  /** Saves and removes the session's sandbox; returns false if someone works in it. */
  recycle: (sessionId: string) => Promise<boolean>
}

interface Live {
  record: SessionRecord
  owner: string
}

export class SandboxPlaces {
  readonly #given: SandboxPlacesOptions
  readonly #lock = new KeyedLock()
  readonly #counting = new KeyedLock()
  /** The sessions with a fork on this instance. A fork takes a place too. */
  readonly #forks = new Set<string>()
  /** The containers of programs on this instance, with the owners of the programs. They take places too. */
  readonly #realms = new Map<symbol, string>()

  constructor(given: SandboxPlacesOptions) {
    this.#given = given
  }

  /** Throws if there is no place for this session and none can be freed. */
  async reserve(sessionId: string, epoch: number): Promise<void> {
    const { deps, options } = this.#given
    const record = await deps.store.get(sessionId)
    // It already has a place. It must not wait for the lock, whose holder may be waiting for this session.
    if (record?.live) return this.#checked(await deps.store.reserve(sessionId, epoch, options.maxSessions))
    const owner = await deps.ownerOf(sessionId)
    // One at a time, so that concurrent requests of one owner can't all take the last place.
    const take = () => deps.store.reserve(sessionId, epoch, options.maxSessions)
    await this.#lock.run(owner, () => this.#makeRoom(sessionId, owner, take, () => this.#othersOf(owner)))
  }

  /** Throws if there is no place for the container of a program, and none can be freed. Returns how to give it back. */
  async reserveRealm(owner: string): Promise<() => void> {
    const place = Symbol('realm')
    const release = () => {
      if (this.#realms.delete(place)) this.#countLater()
    }
    const take = async () => {
      const max = Math.max(1, Math.floor(this.#given.options.maxSessions / REALMS_PART))
      if (this.#realms.size >= max) throw tooManyPrograms(max)
      this.#realms.set(place, owner)
      const isGiven = await this.#countForks().catch((error) => {
        release()
        throw error
      })
      if (!isGiven) this.#realms.delete(place)
      return isGiven ? 'ok' : 'full'
    }
    await this.#lock.run(owner, () => this.#makeRoom('', owner, take, () => this.#othersOf(owner)))
    return release
  }

  /** Throws if there is no place for a fork. Nothing is recycled for one: the call can wait for approval instead. */
  async reserveFork(sessionId: string): Promise<void> {
    const { deps, options } = this.#given
    const owner = await deps.ownerOf(sessionId)
    await this.#lock.run(owner, async () => {
      const live = await this.#live('')
      const own = live.filter((one) => one.owner === owner).length
      if (own + (await this.#othersOf(owner)) >= options.maxSandboxesPerOwner)
        throw tooManyOfOwner(options.maxSandboxesPerOwner)
      this.#forks.add(sessionId)
      const isGiven = await this.#countForks().catch((error) => {
        this.releaseFork(sessionId)
        throw error
      })
      if (isGiven) return
      this.#forks.delete(sessionId)
      throw tooMany(options.maxSessions)
    })
  }

  releaseFork(sessionId: string): void {
    if (this.#forks.delete(sessionId)) this.#countLater()
  }

  /** The forks and programs of an owner on this instance. */
  async #othersOf(owner: string): Promise<number> {
    const owners = await Promise.all([...this.#forks].map((id) => this.#given.deps.ownerOf(id)))
    return [...owners, ...this.#realms.values()].filter((id) => id === owner).length
  }

  #countLater(): void {
    const { logger } = this.#given.deps
    this.#countForks().catch((error) => logger.warn({ err: error }, `A fork still counts: ${messageOf(error)}`))
  }

  /** Tells the store how many forks and programs there are: all instances share the limit. One at a time, so that the last figure is the right one. */
  #countForks(): Promise<boolean> {
    const { deps, options } = this.#given
    const count = () => this.#forks.size + this.#realms.size
    return this.#counting.run('', () => deps.store.reserveForks(deps.instanceId, count(), options.maxSessions))
  }

  get forks(): number {
    return this.#forks.size
  }

  /** `others` counts what the owner has beside sandboxes. */
  async #makeRoom(
    sessionId: string,
    owner: string,
    take: () => Promise<'ok' | 'full' | 'lost'>,
    others: () => Promise<number>
  ): Promise<void> {
    const { options } = this.#given
    const tried = new Set([sessionId])
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const live = await this.#live(sessionId)
      const own = live.filter((one) => one.owner === owner)
      if (own.length + (await others()) >= options.maxSandboxesPerOwner) {
        if (!(await this.#recycleOne(own, tried))) throw tooManyOfOwner(options.maxSandboxesPerOwner)
        continue
      }
      const outcome = await take()
      if (outcome !== 'full') return this.#checked(outcome)
      if (!(await this.#recycleOne(this.#candidates(live, owner), tried))) break
    }
    throw tooMany(options.maxSessions)
  }

  #checked(outcome: 'ok' | 'full' | 'lost'): void {
    if (outcome === 'lost') throw leaseLost()
    if (outcome === 'full') throw tooMany(this.#given.options.maxSessions)
  }

  async #live(except: string): Promise<Live[]> {
    const { store, ownerOf } = this.#given.deps
    const records = (await store.listLive()).filter(({ sessionId }) => sessionId !== except)
    return Promise.all(records.map(async (record) => ({ record, owner: await ownerOf(record.sessionId) })))
  }

  /** The sandboxes whose places this owner may take, in that order. The longest idle come first in `live`. */
  #candidates(live: Live[], owner: string): Live[] {
    const counts = new Map<string, number>([[owner, 0]])
    for (const one of live) counts.set(one.owner, (counts.get(one.owner) ?? 0) + 1)
    const share = Math.max(1, Math.floor(this.#given.options.maxSessions / counts.size))
    const isAbove = (one: Live) => (counts.get(one.owner) ?? 0) > share
    const mayTakeAny = (counts.get(owner) ?? 0) < share
    const others = live.filter((one) => !isAbove(one) && (mayTakeAny || one.owner === owner))
    return [...live.filter(isAbove), ...others]
  }

  /** Each is tried once: one that could not be recycled would be the longest idle again. */
  async #recycleOne(candidates: Live[], tried: Set<string>): Promise<boolean> {
    const { store, logger } = this.#given.deps
    const now = await store.now()
    for (const { record } of candidates) {
      const isFree = !record.busy || record.leaseUntil <= now
      if (!isFree || tried.has(record.sessionId)) continue
      tried.add(record.sessionId)
      try {
        if (await this.#given.recycle(record.sessionId)) return true
      } catch (error) {
        logger.warn({ err: error, sessionId: record.sessionId }, `Its sandbox can not be recycled: ${messageOf(error)}`)
      }
    }
    return false
  }
}

function tooMany(max: number): AppError {
  const message = `All ${max} sandboxes are in use, and no idle one can make room for you; try again in a minute.`
  return new AppError('unavailable', 'too_many_sessions', message)
}

function tooManyPrograms(max: number): AppError {
  const message = `All ${max} sandboxes for programs are in use; try again in a minute.`
  return new AppError('unavailable', 'too_many_programs', message)
}

function tooManyOfOwner(max: number): AppError {
  const message = `You have reached the limit of ${max} running sandboxes. Wait until an idle one stops, or delete a session that you no longer need.`
  return new AppError('unavailable', 'too_many_sandboxes_of_owner', message)
}
