import { messageOf } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import { SingleFlight } from '../../lib/waiting/single-flight.ts'
import type { KeyValueStore } from '../../storage/key-value-store.ts'
import type { SessionAccess } from '../access/session-access.ts'

const SPACE = 'deleted-sessions'
/** How long a deleted session can be brought back. Pages offer it for less. */
const UNDO_MS = 30_000
const LOOK_EVERY_MS = 10_000

interface Deps {
  keyValues: Pick<KeyValueStore, 'set' | 'remove' | 'list'>
  access: Pick<SessionAccess, 'meta' | 'mark'>
  now: () => Promise<number>
  destroy: (sessionId: string) => Promise<void>
  logger: Logger
}

/**
 * Sessions that are hidden and will be deleted for good in a moment. The store knows them, so that a restart or another instance
 * finishes what this one began. The list comes first and the mark second: a session is deleted only if it has both.
 */
export class DeletedSessions {
  readonly #deps: Deps
  readonly #rounds = new SingleFlight<void>()
  #timer: NodeJS.Timeout | undefined

  constructor(deps: Deps) {
    this.#deps = deps
  }

  start(): void {
    this.#timer = setInterval(() => void this.round(), LOOK_EVERY_MS).unref()
    void this.round()
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.#rounds.running
  }

  async add(sessionId: string): Promise<void> {
    const { keyValues, access, now } = this.#deps
    await keyValues.set(SPACE, sessionId, await now())
    await access.mark(sessionId, { isDeleted: true })
  }

  async restore(sessionId: string): Promise<void> {
    const { keyValues, access } = this.#deps
    await access.mark(sessionId, { isDeleted: false })
    await keyValues.remove(SPACE, sessionId)
  }

  /** Deletes for good what nobody has brought back in time. */
  round(): Promise<void> {
    return this.#rounds.run(() => this.#round().catch((error) => this.#warn(error)))
  }

  async #round(): Promise<void> {
    const { keyValues, access, now, destroy } = this.#deps
    const listed = await keyValues.list(SPACE)
    if (listed.length === 0) return
    const until = (await now()) - UNDO_MS
    for (const { key: sessionId, value } of listed) {
      if (Number(value) > until) continue
      try {
        if ((await access.meta(sessionId))?.isDeleted) await destroy(sessionId)
        await keyValues.remove(SPACE, sessionId)
      } catch (error) {
        this.#warn(error, sessionId)
      }
    }
  }

  #warn(error: unknown, sessionId?: string): void {
    this.#deps.logger.warn({ err: error, sessionId }, `A session was not deleted yet: ${messageOf(error)}`)
  }
}
