/**
 * Containers that are ready before anyone asks: created, connected under epoch 0, and with verified limits. They are generic, and
 * each is given away at most once. The pool owns its members until `take`.
 */

import { messageOf } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import { backoffMs } from '../../lib/waiting/backoff.ts'
import type { SandboxEngine, SandboxOwner, WorkspaceConnection } from '../../sandbox/port.ts'

export interface WarmPoolOptions {
  engine: SandboxEngine
  owner: () => Promise<SandboxOwner>
  size: number
  logger: Logger
  /** Ids of containers that this instance created and that no session is bound to yet; they are not orphans. */
  made: Set<string>
}

/** Creating a container uses a processor for a while. A session that has just taken one needs the processor for its first call. */
const REFILL_AFTER_MS = 300

export class WarmPool {
  readonly #options: WarmPoolOptions
  readonly #members: WorkspaceConnection[] = []
  readonly #making = new Set<Promise<void>>()
  /** Ids of those being created. */
  readonly #fresh = new Set<string>()
  #failures = 0
  /** Why the last one could not be created. */
  #lastReason = ''
  #retry: NodeJS.Timeout | undefined
  #refill: NodeJS.Timeout | undefined
  #stopped = false

  constructor(options: WarmPoolOptions) {
    this.#options = options
  }

  get ready(): number {
    return this.#members.length
  }

  /** Creates missing members in the background. */
  fill(): void {
    if (this.#stopped || this.#retry) return
    while (this.#members.length + this.#making.size < this.#options.size) {
      const making: Promise<void> = this.#make().finally(() => this.#making.delete(making))
      this.#making.add(making)
    }
  }

  take(): WorkspaceConnection | undefined {
    for (;;) {
      const member = this.#members.shift()
      if (!member) {
        this.fill()
        return undefined
      }
      this.#fillLater()
      if (member.isOpen) return member
      void this.#discard(member.containerId)
    }
  }

  #fillLater(): void {
    if (this.#stopped) return
    this.#refill ??= setTimeout(() => {
      this.#refill = undefined
      this.fill()
    }, REFILL_AFTER_MS).unref()
  }

  /** Keeps idle members from concluding that their owner is gone. */
  async ping(): Promise<void> {
    await Promise.allSettled(this.#members.map((member) => member.ping()))
  }

  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#retry)
    clearTimeout(this.#refill)
    // On a busy machine, creating one takes longer than a stop may, so remove unfinished ones at once.
    await Promise.allSettled([...this.#fresh].map((containerId) => this.#discard(containerId)))
    await Promise.allSettled(this.#making)
    await Promise.allSettled(this.#members.splice(0).map((member) => this.#discard(member.containerId)))
  }

  async #make(): Promise<void> {
    try {
      const member = await openFresh(this.#options.engine, await this.#options.owner(), 0, this.#made)
      this.#fresh.delete(member.containerId)
      this.#failures = 0
      this.#lastReason = ''
      this.#members.push(member)
      void member.closed.then(() => this.#drop(member))
    } catch (error) {
      if (this.#stopped) return
      this.#tell(error)
      this.#retryLater()
    }
  }

  readonly #made = {
    add: (containerId: string) => {
      this.#options.made.add(containerId)
      this.#fresh.add(containerId)
      if (this.#stopped) void this.#discard(containerId)
    },
    delete: (containerId: string) => {
      this.#fresh.delete(containerId)
      this.#options.made.delete(containerId)
    }
  }

  /** Creating is retried while the engine is away, so the same reason is logged as a warning only once. */
  #tell(error: unknown): void {
    const reason = messageOf(error)
    const level = reason === this.#lastReason ? 'debug' : 'warn'
    this.#lastReason = reason
    this.#options.logger[level]({ err: error }, `A warm sandbox could not be created: ${reason}`)
  }

  #retryLater(): void {
    if (this.#stopped || this.#retry) return
    this.#failures += 1
    const wait = backoffMs(this.#failures, { firstMs: 500, maxMs: 30_000 })
    this.#retry = setTimeout(() => {
      this.#retry = undefined
      this.fill()
    }, wait).unref()
  }

  #drop(member: WorkspaceConnection): void {
    const at = this.#members.indexOf(member)
    if (at < 0) return
    this.#members.splice(at, 1)
    void this.#discard(member.containerId)
    this.#retryLater()
  }

  async #discard(containerId: string): Promise<void> {
    try {
      await this.#options.engine.remove(containerId)
    } catch (error) {
      this.#options.logger.warn({ containerId }, `A container is left for the janitor: ${messageOf(error)}`)
    } finally {
      this.#options.made.delete(containerId)
    }
  }
}

/** Creates a container with a server that answers and limits that are enforced. Leaves nothing behind when any of that fails. */
export async function openFresh(
  engine: SandboxEngine,
  owner: SandboxOwner,
  epoch: number,
  made: { add(containerId: string): void; delete(containerId: string): void }
): Promise<WorkspaceConnection> {
  const containerId = await engine.create(owner)
  made.add(containerId)
  try {
    const connection = await engine.connect(containerId, epoch)
    await engine.verifyLimits(connection)
    return connection
  } catch (error) {
    await engine.remove(containerId).catch(() => {})
    made.delete(containerId)
    throw error
  }
}

/** Takes a member of the pool that can be used under this epoch; undefined if there is none. */
export async function claimWarm(
  pool: Pick<WarmPool, 'take'>,
  { engine, logger }: Pick<WarmPoolOptions, 'engine' | 'logger'>,
  made: { delete(containerId: string): void },
  epoch: number
): Promise<WorkspaceConnection | undefined> {
  for (;;) {
    const member = pool.take()
    if (!member) return undefined
    try {
      await member.claim(epoch)
      return member
    } catch (error) {
      logger.warn({ containerId: member.containerId }, `A warm sandbox was unusable: ${messageOf(error)}`)
      await engine.remove(member.containerId).catch(() => {})
      made.delete(member.containerId)
    }
  }
}
