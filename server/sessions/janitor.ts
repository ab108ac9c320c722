/**
 * Takes away what nobody uses: sandboxes idle for too long, containers of ours that no session is bound to, and sessions past
 * their retention. Never acts on the absence of knowledge: an unreachable or emptied store or engine means that nothing is removed.
 */
import { messageOf } from '../lib/errors.ts'
import type { ContainerSummary } from '../sandbox/port.ts'
import type { SessionRecord } from '../storage/session-store.ts'
import type { LiveSession } from './live-session.ts'
import type { SessionsDeps, SessionsOptions } from './session-options.ts'

const REAP_AT_ONCE = 20
const REAP_LEASE_MS = 30_000
const GAVE_WAY =
  'The sandbox was idle and made room for another session; the files are kept, and the next call gets a new sandbox.'

export interface JanitorOptions {
  deps: SessionsDeps
  options: SessionsOptions
  made: ReadonlySet<string>
  deployment: () => string
  session: (sessionId: string) => LiveSession
  done: (session: LiveSession) => void
}

export class Janitor {
  readonly #options: JanitorOptions
  #suspects = new Set<string>()
  #running: Promise<void> | undefined

  constructor(options: JanitorOptions) {
    this.#options = options
  }

  /** One round; a call during a round waits for that one. */
  round(): Promise<void> {
    this.#running ??= this.#round().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  async stop(): Promise<void> {
    await this.#running
  }

  /** For the last instance that goes: what those before it left when they were killed, however fresh it is. */
  async recycleLeft(): Promise<void> {
    for (;;) {
      const left = await this.#takeIdle(0, REAP_AT_ONCE)
      const gone = await Promise.all(left.map((record) => this.#recycle(record)))
      if (!gone.includes(true)) return
    }
  }

  /**
   * Recycles the sandbox of this session because another one needs its place, whichever instance holds it; false when someone
   * works in it. Never waits for the session: the caller holds the lock of another one.
   */
  async giveWay(sessionId: string): Promise<boolean> {
    const { deps, session: find, done } = this.#options
    const session = find(sessionId)
    if (session.isInUse) return false
    try {
      return await session.locked(async () => {
        const taken = await deps.store.acquire(sessionId, deps.instanceId, REAP_LEASE_MS)
        if (!taken.granted) return false
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
      ['remove expired sessions', () => this.#expire()]
    ] as const) {
      try {
        await job()
      } catch (error) {
        this.#options.deps.logger.warn({ err: error }, `Could not ${what}: ${messageOf(error)}`)
      }
    }
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

  async #removeOrphans(): Promise<void> {
    const { deps, made, deployment } = this.#options
    // The engine first, the store second: a container that is bound in between is then seen as bound.
    const containers = await deps.engine.list(deployment())
    const alive = new Set(await deps.store.instances())
    const bound = new Set((await deps.store.list()).map((record) => record.containerId))
    const orphans = containers.filter((container) => {
      if (bound.has(container.id) || made.has(container.id)) return false
      return this.#isOld(container) && (container.instance === deps.instanceId || !alive.has(container.instance))
    })
    const again = orphans.filter(({ id }) => this.#suspects.has(id))
    this.#suspects = new Set(orphans.map(({ id }) => id))
    if ((await deps.store.deploymentId()) !== deployment()) return // the store was emptied under us: what it says proves nothing
    await Promise.allSettled(
      again.map(async ({ id }) => {
        await deps.engine.remove(id)
        deps.logger.info({ containerId: id }, 'Removed an orphaned container.')
      })
    )
  }

  #isOld(container: ContainerSummary): boolean {
    return Date.now() - container.createdAt > this.#options.options.orphanGraceMs
  }

  async #expire(): Promise<void> {
    const { deps, options } = this.#options
    const now = await deps.store.now()
    const isExpired = ({ live, activeAt }: SessionRecord) => !live && now - activeAt > options.retentionMs
    const records = await deps.store.list()
    for (const { sessionId } of records.filter(isExpired)) {
      try {
        await this.#remove(sessionId, isExpired)
      } catch (error) {
        deps.logger.warn({ err: error, sessionId }, `Not removed, though its time is over: ${messageOf(error)}`)
      }
    }
    // A chat that makes no use of its sandbox leaves its files alone: how old they are says nothing then.
    await deps.checkpoints.prune(options.retentionMs, new Set(records.map(({ sessionId }) => sessionId)))
  }

  /** The record goes last: what fails half-way is found again in the next round. */
  async #remove(sessionId: string, isExpired: (record: SessionRecord) => boolean): Promise<void> {
    const { deps, session: find, done } = this.#options
    const session = find(sessionId)
    try {
      await session.locked(async () => {
        // Someone may have come back to it since it was listed.
        const record = await deps.store.get(sessionId)
        if (!record || !isExpired(record)) return
        await deps.checkpoints.remove(sessionId)
        await deps.events.remove(sessionId)
        await deps.forgotten(sessionId)
        await deps.store.remove(sessionId, record.epoch)
      })
    } finally {
      done(session)
    }
  }
}
