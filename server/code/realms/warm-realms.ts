/**
 * Realms in containers of their own, one per program. After the first program, one realm is kept ready for the next. Invariants: a
 * realm runs one program, has no network, no folder of the host and no environment. Each takes a place, except the one that is
 * ready.
 */

import { realmArguments } from '../../../workspace-server/code/code-protocol.ts'
import { INSIDE } from '../../../workspace-server/protocol.ts'
import { AppError, messageOf } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import { Lazy } from '../../lib/waiting/lazy.ts'
import type { ChildContainers } from '../../sandbox/child-port.ts'
import type { RealmProcess } from './code-channel.ts'
import { RealmQueue, type RealmRequest, type ReserveRealm } from './realm-queue.ts'

const IDLE_MS = 300_000

export class WarmRealms {
  readonly #containers: Lazy<ChildContainers>
  readonly #queue: RealmQueue
  readonly #logger: Logger
  #warm: Promise<RealmProcess> | undefined
  #idle: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(openContainers: () => Promise<ChildContainers>, reserve: ReserveRealm, logger: Logger) {
    this.#containers = new Lazy(openContainers)
    this.#queue = new RealmQueue(reserve)
    this.#logger = logger
  }

  /** Waits for a place. Throws an AppError that says what is missing. */
  open(request: RealmRequest): Promise<RealmProcess> {
    return this.#queue.open(request, async () => {
      const realm = (await this.#takeWarm()) ?? (await this.#start(request.signal))
      this.#prepare()
      return realm
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#idle)
    await (await this.#containers.opened?.catch(() => undefined))?.stopAll()
  }

  async #takeWarm(): Promise<RealmProcess | undefined> {
    const warm = this.#warm
    this.#warm = undefined
    clearTimeout(this.#idle)
    return warm?.catch(() => undefined)
  }

  #prepare(): void {
    if (this.#isClosed || this.#warm) return
    const warm = this.#start(new AbortController().signal)
    this.#warm = warm
    const forget = () => {
      if (this.#warm === warm) this.#warm = undefined
    }
    warm.then(
      (realm) => void realm.exited.then(forget),
      (error) => {
        this.#logger.debug(`No sandbox could be prepared for the next program: ${messageOf(error)}`)
        forget()
      }
    )
    this.#idle = setTimeout(() => {
      forget()
      void warm.then((realm) => realm.stop()).catch(() => {})
    }, IDLE_MS).unref()
  }

  async #start(signal: AbortSignal): Promise<RealmProcess> {
    if (this.#isClosed) throw new AppError('unavailable', 'shutting_down', 'The gateway is stopping.')
    const containers = await this.#containers.get()
    const request = {
      server: 'run_code',
      command: INSIDE.readableNode,
      args: realmArguments(),
      env: { TZ: 'UTC' },
      folders: [],
      hosts: [],
      onDenied: () => {}
    }
    const { stdin, stdout, stderr, exited, stop } = await containers.start(request, signal)
    // Nobody reads it, and a full pipe would stop the program.
    stderr.resume()
    return { stdin, stdout, exited, stop: () => stop(0) }
  }
}
