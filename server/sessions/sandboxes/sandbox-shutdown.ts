/**
 * Ends the sandboxes of an instance that shuts down: saves their files, unsaved changes first, and then removes the containers.
 * Invariant: a container is removed only after its files were saved; the others are left for the next start to save.
 */
import { messageOf } from '../../lib/errors.ts'
import type { LiveSession } from './live-session.ts'
import type { SessionsDeps } from './session-options.ts'

/** More would only compete for the same processors and disk, and delay those with unsaved changes. */
const AT_ONCE = 8

export interface SandboxShutdownOptions {
  deps: SessionsDeps
  leaseMs: number
  sessions: readonly LiveSession[]
  /** Once it fires, no new work starts. */
  late: AbortSignal
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
  #count = 0
  /** Containers without unsaved changes that could not be removed. */
  left = 0

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
    return this.#count
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

  /** Drops those that have been saved in another way since. */
  async dropSaved(): Promise<void> {
    const { store } = this.#options.deps
    for (const sessionId of this.#unsaved) {
      if ((await store.get(sessionId))?.containerId === null) this.#note(sessionId)
    }
  }

  async #save(session: LiveSession): Promise<void> {
    const { deps, leaseMs } = this.#options
    const { sessionId } = session
    try {
      await session.locked(async () => {
        if (session.sandbox.state === 'none') return // it could not be opened
        const taken = await deps.store.acquire(sessionId, deps.instanceId, leaseMs)
        // Another instance has the session, and so its container.
        if (!taken.granted || taken.record.epoch !== session.epoch) {
          this.#unsaved.delete(sessionId)
          return session.sandbox.disconnect()
        }
        const containerId = await session.saveAndRelease(taken.record, () => this.#note(sessionId))
        if (containerId) this.#saved.push({ sessionId, containerId })
      })
    } catch (error) {
      deps.logger.warn({ sessionId }, `Left for the next start: ${messageOf(error)}`)
      await session.sandbox.disconnect()
      // Then neither the last try of this instance nor another instance has to wait for the lease to expire.
      await deps.store.release(sessionId, session.epoch).catch(() => {})
    }
  }

  #note(sessionId: string): void {
    this.#unsaved.delete(sessionId)
    this.#count += 1
  }

  /** A container that can't be removed no longer belongs to a session, so the next start removes it. */
  async #remove({ sessionId, containerId }: SavedSandbox): Promise<void> {
    const { engine, logger } = this.#options.deps
    try {
      await engine.remove(containerId)
      logger.info({ sessionId, containerId }, 'Sandbox recycled.')
    } catch (error) {
      this.left += 1
      logger.warn({ containerId }, `A container is left to be removed by the next start: ${messageOf(error)}`)
    }
  }
}

/** Sandboxes that are still being opened come last, because they would delay the others. */
function urgency({ sandbox }: LiveSession): number {
  if (sandbox.state === 'none' || sandbox.isSaved) return 0
  return sandbox.isDirty ? 2 : 1
}
