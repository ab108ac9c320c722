/**
 * Removes what nobody uses: sandboxes that were idle for too long, our containers without a session, and expired sessions. It
 * never acts on missing knowledge: if the store or the engine is unreachable or was emptied, nothing is removed.
 */

import { messageOf } from '../../lib/errors.ts'
import { SingleFlight } from '../../lib/waiting/single-flight.ts'
import { SteadyClock } from '../../lib/waiting/steady-clock.ts'
import type { ContainerSummary } from '../../sandbox/port.ts'
import type { SessionRecord } from '../../storage/session-store.ts'
import type { LiveSession } from './live-session.ts'
import type { SessionsDeps, SessionsOptions } from './session-options.ts'

const REAP_AT_ONCE = 20
const REAP_LEASE_MS = 30_000
const GAVE_WAY =
  'The sandbox was idle and made room for another session; the files are kept, and the next call gets a new sandbox.'
const REMOVE_AT_ONCE = 10

export interface JanitorOptions {
  deps: SessionsDeps
  options: SessionsOptions
  made: ReadonlySet<string>
  /** Containers that this instance has open for a session, whatever the store says. */
  inUse: () => ReadonlySet<string | undefined>
  deployment: () => string
  /** The origin of the store in which this instance has registered its sandboxes. */
  origin: () => string
  session: (sessionId: string) => LiveSession
  done: (session: LiveSession) => void
}

export class Janitor {
  readonly #options: JanitorOptions
  readonly #clock = new SteadyClock()
  #suspects = new Set<string>()
  readonly #rounds = new SingleFlight<void>()

  constructor(options: JanitorOptions) {
    this.#options = options
  }

  /** Runs one round; a call during a round waits for that one. */
  round(): Promise<void> {
    return this.#rounds.run(() => this.#round())
  }

  async stop(): Promise<void> {
    await this.#rounds.running
  }

  /** For the last instance to stop: removes what killed instances left behind, however fresh it is. */
  async recycleLeftovers(onRecycled: (sessionId: string) => void): Promise<void> {
    for (;;) {
      const left = await this.#takeIdle(0, REAP_AT_ONCE)
      const gone = await Promise.all(left.map((record) => this.#recycle(record)))
      for (const [at, { sessionId, containerId }] of left.entries()) if (gone[at] && containerId) onRecycled(sessionId)
      if (!gone.includes(true)) return
    }
  }

  /**
   * Recycles this session's sandbox because another session needs its place, whichever instance holds it. Returns false if
   * someone works in it. Never waits for the session, because the caller holds the lock of another one.
   */
  async recycleForOther(sessionId: string): Promise<boolean> {
    const { deps, session: find, done } = this.#options
    const session = find(sessionId)
    if (session.isInUse) return false
    try {
      return await session.locked(async () => {
        // Another instance was faster: the place is free already, or taken by somebody else. Its lease stays as it is.
        if (!(await deps.store.get(sessionId))?.live) return false
        const taken = await deps.store.acquire(sessionId, deps.instanceId, REAP_LEASE_MS)
        if (!taken.granted) return false
        // It may have done so just now.
        if (!taken.record.live) {
          await deps.store.release(sessionId, taken.record.epoch)
          return false
        }
        try {
          await session.recycle(taken.record)
        } catch (error) {
          await deps.store.release(sessionId, taken.record.epoch).catch(() => {})
          throw error
        }
        await session.events.notice('sandbox_recycled', GAVE_WAY, taken.record.epoch)
        return true
      })
    } finally {
      done(session)
    }
  }

  async #round(): Promise<void> {
    for (const [what, job] of [
      ['recycle idle sandboxes', () => this.#reap()],
      ['remove orphans', () => this.#removeOrphans()],
      ['remove what earlier processes left', () => this.#sweepEngine()],
      ['remove expired sessions', () => this.#expire()]
    ] as const) {
      try {
        await job()
      } catch (error) {
        this.#options.deps.logger.warn({ err: error }, `Could not ${what}: ${messageOf(error)}`)
      }
    }
  }

  async #cleansForAll(): Promise<boolean> {
    const { engine, cleansForAll } = this.#options.deps
    return !engine.isShared || !cleansForAll || (await cleansForAll())
  }

  async #sweepEngine(): Promise<void> {
    const { deps, deployment } = this.#options
    if (deps.engine.sweep && (await this.#cleansForAll())) await deps.engine.sweep(deployment())
  }

  async #reap(): Promise<void> {
    const { idleMs } = this.#options.options
    const text = `The sandbox was recycled after ${Math.round(idleMs / 60_000)} minutes without use; the files are kept.`
    const idle = await this.#takeIdle(idleMs, REAP_AT_ONCE)
    await Promise.allSettled(idle.map((record) => this.#recycle(record, text)))
  }

  #takeIdle(idleMs: number, limit: number): Promise<SessionRecord[]> {
    const { store, instanceId } = this.#options.deps
    return store.takeIdle(instanceId, { idleMs, leaseMs: REAP_LEASE_MS, limit })
  }

  async #recycle(record: SessionRecord, notice?: string): Promise<boolean> {
    const { deps, session: find } = this.#options
    const session = find(record.sessionId)
    try {
      if (!(await session.recycleIfIdle(record))) return false
      if (notice) await session.events.notice('sandbox_recycled', notice, record.epoch)
      return true
    } catch (error) {
      deps.logger.warn({ err: error, sessionId: record.sessionId }, `Not recycled: ${messageOf(error)}`)
      await deps.store.release(record.sessionId, record.epoch).catch(() => {})
      return false
    } finally {
      this.#options.done(session)
    }
  }

  /** Removes the containers of instances that are certainly dead, except those bound to a session. */
  async sweep(): Promise<void> {
    const loose = await this.#looseContainers()
    const dead = await this.#provenDead()
    await this.#remove(
      loose.filter(({ instance }) => dead(instance)),
      'of an instance that has ended'
    )
  }

  async #removeOrphans(): Promise<void> {
    const { deps } = this.#options
    const loose = await this.#looseContainers((await this.#cleansForAll()) ? undefined : deps.instanceId)
    const dead = await this.#provenDead()
    const alive = new Set(await deps.store.instances())
    const orphans = loose.filter((container) => {
      if (dead(container.instance)) return true
      return this.#isOld(container) && (container.instance === deps.instanceId || !alive.has(container.instance))
    })
    const again = orphans.filter(({ id, instance }) => dead(instance) || this.#suspects.has(id))
    this.#suspects = new Set(orphans.map(({ id }) => id))
    if (deps.isAlone || (await this.#isSettled())) await this.#remove(again, 'that belongs to no session')
  }

  /** Containers of this deployment that no session is bound to and that this instance does not need. */
  async #looseContainers(instance?: string): Promise<ContainerSummary[]> {
    const { deps, made, inUse, deployment } = this.#options
    // Ask the engine first and the store second, so that a container bound in between counts as bound.
    const containers = await deps.engine.list(deployment(), instance)
    const bound = new Set((await deps.store.list()).map((record) => record.containerId))
    const used = inUse()
    return containers.filter(({ id }) => !bound.has(id) && !made.has(id) && !used.has(id))
  }

  async #provenDead(): Promise<(instance: string) => boolean> {
    const { instanceId, isAlone, store } = this.#options.deps
    if (isAlone) return (instance) => instance !== instanceId
    const ended = new Set(await store.endedInstances())
    return (await this.#isSettled()) ? (instance) => ended.has(instance) : () => false
  }

  /**
   * After the store was emptied, live instances need a moment to register their sandboxes again. Until then the store does not
   * prove that a container has no session, or that an instance is gone.
   */
  async #isSettled(): Promise<boolean> {
    const { deps, options, origin } = this.#options
    const { id, at } = await deps.store.origin()
    const isKnown = origin() === '' || origin() === id
    return isKnown && (await deps.store.now()) - at >= options.orphanGraceMs
  }

  async #remove(containers: ContainerSummary[], why: string): Promise<void> {
    const { engine, logger } = this.#options.deps
    for (let at = 0; at < containers.length; at += REMOVE_AT_ONCE) {
      const removed = containers.slice(at, at + REMOVE_AT_ONCE).map(async ({ id, instance }) => {
        if (await engine.remove(id)) logger.info({ containerId: id, owner: instance }, `Removed a container ${why}.`)
      })
      const failed = (await Promise.allSettled(removed)).find(({ status }) => status === 'rejected')
      if (failed?.status === 'rejected') throw failed.reason
    }
  }

  #isOld(container: ContainerSummary): boolean {
    return Date.now() - container.createdAt > this.#options.options.orphanGraceMs
  }

  async #expire(): Promise<void> {
    const { deps, options } = this.#options
    const now = await deps.store.now()
    if (this.#clock.steadyMs(now, Date.now()) < options.clockTrustMs) return
    const isExpired = ({ live, activeAt }: SessionRecord) => !live && now - activeAt > options.retentionMs
    const records = await deps.store.list()
    for (const { sessionId } of records.filter(isExpired)) {
      try {
        await this.#removeSession(sessionId, isExpired)
      } catch (error) {
        deps.logger.warn({ err: error, sessionId }, `An expired session was not removed: ${messageOf(error)}`)
      }
    }
    // A chat that does not use its sandbox does not touch its files, so their age means nothing.
    await deps.checkpoints.prune(options.retentionMs, new Set(records.map(({ sessionId }) => sessionId)))
  }

  /** The record is removed last, so that the next round finds what failed half-way. */
  async #removeSession(sessionId: string, isExpired: (record: SessionRecord) => boolean): Promise<void> {
    const { deps, session: find, done } = this.#options
    const session = find(sessionId)
    const expired = async () => {
      const record = await deps.store.get(sessionId)
      return record && isExpired(record) ? record : undefined
    }
    try {
      await session.locked(async () => {
        // Someone may have come back to it since it was listed.
        const { epoch } = (await expired()) ?? {}
        if (epoch === undefined) return
        // From now on, everyone who comes back gets a higher epoch, even the last holder. So nothing of theirs is removed.
        await deps.store.release(sessionId, epoch)
        if ((await expired())?.epoch !== epoch) return
        await deps.checkpoints.remove(sessionId, epoch)
        await deps.events.remove(sessionId, epoch)
        await deps.forgotten(sessionId)
        await deps.store.remove(sessionId, epoch)
      })
    } finally {
      done(session)
    }
  }
}
