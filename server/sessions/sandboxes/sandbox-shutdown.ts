/**
 * Ends the sandboxes of an instance that shuts down: saves their files, unsaved changes first, and then removes the containers.
 * Invariant: a container is removed only after its files were saved; the others are left for the next start to save.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { messageOf } from '../../lib/errors.ts'
import { withDeadline } from '../../lib/waiting/deadline.ts'
import type { ContainerSummary } from '../../sandbox/port.ts'
import type { SessionRecord } from '../../storage/session-store.ts'
import type { LiveSession } from './live-session.ts'
import type { OwnContainers } from './own-containers.ts'
import type { SessionsDeps } from './session-options.ts'

/** More would only compete for the same processors and disk, and delay those with unsaved changes. */
const AT_ONCE = 8
/** How long the engine may take at the end to list what is left. */
const LIST_MS = 2000
const LIST_AGAIN_MS = 50

export interface SandboxShutdownOptions {
  deps: SessionsDeps
  leaseMs: number
  sessions: readonly LiveSession[]
  /** Once it fires, no new work starts. */
  late: AbortSignal
  own: OwnContainers
  deployment: () => string
}

interface SavedSandbox {
  sessionId: string
  containerId: string
}

export class SandboxShutdown {
  readonly #options: SandboxShutdownOptions
  readonly #unsaved = new Set<string>()
  readonly #waiting: LiveSession[]
  /** Containers whose files are saved. */
  readonly #saved: SavedSandbox[] = []
  readonly #savedSessions = new Set<string>()
  #left: number | undefined
  /** Sessions and containers whose reason is in the log. */
  readonly #told = new Set<string>()

  constructor(options: SandboxShutdownOptions) {
    this.#options = options
    this.#waiting = options.sessions
      .filter(({ sandbox, isOpening }) => sandbox.state !== 'none' || isOpening)
      .toSorted((a, b) => urgency(b) - urgency(a))
    for (const { sessionId, sandbox } of this.#waiting) {
      if (sandbox.state !== 'none' && !sandbox.isSaved) this.#unsaved.add(sessionId)
    }
  }

  /** Sessions whose latest changes may not be saved. Their containers are kept. */
  get unsaved(): string[] {
    return [...this.#unsaved]
  }

  get saved(): number {
    return this.#savedSessions.size
  }

  /** Number of containers that are left; all of this instance until `count` knows better. */
  get left(): number {
    return this.#left ?? this.#options.own.ids.size
  }

  async run(): Promise<void> {
    await Promise.all(Array.from({ length: AT_ONCE }, () => this.#work()))
  }

  /** Removes nothing while a sandbox still needs to be saved. */
  async #work(): Promise<void> {
    while (!this.#options.late.aborted) {
      const session = this.#waiting.shift()
      const saved = session ? undefined : this.#saved.shift()
      if (session) await this.#save(session)
      else if (saved) await this.#remove(saved)
      else return
    }
  }

  /** Finds out at the end what is left, from the store and, if it answers, the engine. */
  async count(): Promise<void> {
    const { deps, own, deployment } = this.#options
    const others = new Set((await deps.store.instances()).filter((id) => id !== deps.instanceId))
    const bound = (await deps.store.list()).filter(({ containerId }) => containerId !== null)
    const open = new Set(bound.map(({ sessionId }) => sessionId))
    // Saved in another way, for example by the janitor.
    for (const sessionId of this.#unsaved) if (!open.has(sessionId)) this.note(sessionId)
    const list = () =>
      withDeadline({ what: 'the list of containers', ms: LIST_MS }, () => deps.engine.list(deployment()))
    const known = { bound, others, own: own.ids, instanceId: deps.instanceId }
    let listed: readonly ContainerSummary[] | undefined = await list().catch(() => undefined)
    const unneeded = unbound(known, listed)
    if (unneeded.length > 0) {
      await Promise.all(unneeded.map((containerId) => this.#remove({ containerId })))
      listed = await this.#listWithout(unneeded, list)
    }
    const left = leftBehind(known, listed)
    this.#left = left.size
    this.#tellLeft(left, bound)
    // Other instances save a sandbox that they can still reach.
    if (listed && others.size > 0) return
    for (const { sessionId, containerId } of bound) {
      if (containerId && left.has(containerId) && own.mayBeUnsaved(containerId)) this.#unsaved.add(sessionId)
    }
  }

  /** The engine lists a container until it is removed, also if it has been told to remove it. */
  async #listWithout(
    removed: readonly string[],
    list: () => Promise<readonly ContainerSummary[]>
  ): Promise<readonly ContainerSummary[] | undefined> {
    const until = performance.now() + LIST_MS
    for (;;) {
      const listed = await list().catch(() => undefined)
      const isOver = !listed?.some(({ id }) => removed.includes(id) && !this.#told.has(id))
      if (isOver || performance.now() > until) return listed
      await delay(LIST_AGAIN_MS)
    }
  }

  #tellLeft(left: ReadonlySet<string>, bound: readonly SessionRecord[]): void {
    for (const containerId of left) {
      const sessionId = bound.find((record) => record.containerId === containerId)?.sessionId
      if (this.#told.has(containerId) || this.#told.has(sessionId ?? '')) continue
      const why =
        sessionId === undefined ? 'the engine still lists it' : 'the files of its session were not saved in time'
      this.#options.deps.logger.warn({ containerId, sessionId }, `A sandbox is left: ${why}.`)
    }
  }

  async #save(session: LiveSession): Promise<void> {
    const { deps, leaseMs } = this.#options
    const { sessionId } = session
    try {
      await session.locked(async () => {
        if (session.sandbox.state === 'none') return // it could not be opened
        const taken = await deps.store.acquire(sessionId, deps.instanceId, leaseMs)
        // Another instance works in the session, and so has its container.
        if (!taken.granted) {
          this.#unsaved.delete(sessionId)
          return session.sandbox.disconnect()
        }
        // Another one had the session meanwhile, perhaps without its container: open that anew under our epoch.
        if (taken.record.epoch !== session.epoch) await session.sandbox.disconnect()
        const containerId = await session.saveAndRelease(taken.record, () => this.note(sessionId))
        if (containerId) this.#saved.push({ sessionId, containerId })
      })
    } catch (error) {
      this.#told.add(sessionId)
      deps.logger.warn({ sessionId }, `Left for the next start: ${messageOf(error)}`)
      await session.sandbox.disconnect()
      // Then neither the last try of this instance nor another instance has to wait for the lease to expire.
      await deps.store.release(sessionId, session.epoch).catch(() => {})
    }
  }

  /** The session's files are saved. */
  note(sessionId: string): void {
    this.#unsaved.delete(sessionId)
    this.#savedSessions.add(sessionId)
  }

  /** A container that can't be removed no longer belongs to a session, so the next start removes it. */
  async #remove({ sessionId, containerId }: Partial<SavedSandbox> & { containerId: string }): Promise<void> {
    const { engine, logger } = this.#options.deps
    try {
      await engine.remove(containerId)
      if (sessionId !== undefined) logger.info({ sessionId, containerId }, 'Sandbox recycled.')
    } catch (error) {
      this.#told.add(containerId)
      logger.warn({ containerId }, `A container is left to be removed by the next start: ${messageOf(error)}`)
    }
  }
}

interface Known {
  bound: readonly SessionRecord[]
  /** The other live instances. */
  others: ReadonlySet<string>
  own: ReadonlySet<string>
  instanceId: string
}

/** The containers that remain of this instance and, if it is the last one, of the deployment. Others have those of their sessions. */
function leftBehind(
  { bound, others, own, instanceId }: Known,
  listed: readonly ContainerSummary[] | undefined
): Set<string> {
  const taken = new Set(bound.filter(({ holder }) => holder !== null && others.has(holder)).map((r) => r.containerId))
  const known = listed?.map(({ id }) => id) ?? [...own, ...bound.flatMap(({ containerId }) => containerId ?? [])]
  const mine = new Set(listed?.flatMap(({ id, instance }) => (instance === instanceId ? [id] : [])))
  return new Set(known.filter((id) => !taken.has(id) && (others.size === 0 || own.has(id) || mine.has(id))))
}

/** Containers of this instance that no session needs. */
function unbound({ bound, instanceId }: Known, listed: readonly ContainerSummary[] = []): string[] {
  const needed = new Set(bound.map(({ containerId }) => containerId))
  return listed.flatMap(({ id, instance }) => (instance === instanceId && !needed.has(id) ? [id] : []))
}

/** Sandboxes that are still being opened come last, because they would delay the others. */
function urgency({ sandbox }: LiveSession): number {
  if (sandbox.state === 'none' || sandbox.isSaved) return 0
  return sandbox.isDirty ? 2 : 1
}
