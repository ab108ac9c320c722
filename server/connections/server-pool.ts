/**
 * The instances of one server for one scope: at most as many as its entry allows; another one starts when the others are busy.
 * Owns which instance gets a call; `server-connection.ts` owns each one's lifecycle. Invariant: a call goes to a second instance
 * only if it certainly did not run on the first, or is safe to repeat.
 */

import type { StoredTool } from '../catalog/stored-tools.ts'
import { isAppError } from '../lib/errors.ts'
import { withDeadline } from '../lib/waiting/deadline.ts'
import type { ServerConnection } from './server-connection.ts'
import type { ServerState } from './server-state.ts'
import { longestStartMs } from './start-budget.ts'
import { mayRepeat } from './wire/call-failure.ts'
import type { CallInput, RawResult, RequestInput } from './wire/call-input.ts'

const MAX_TRIES = 3

export class ServerPool {
  readonly #max: number
  readonly #create: () => ServerConnection
  readonly #instances: ServerConnection[] = []
  #retired = false
  /** Resolves with the next end of a call. */
  #ended = Promise.withResolvers<void>()

  constructor(max: number, create: () => ServerConnection) {
    this.#max = max
    this.#create = create
  }

  get states(): ServerState[] {
    return this.#instances.map(({ state }) => state)
  }

  get busy(): number {
    return this.#instances.reduce((sum, { busy }) => sum + busy, 0)
  }

  /** The first instance; in a lane the only one. */
  get main(): ServerConnection {
    return this.#instances[0] ?? this.#add()
  }

  async list(signal: AbortSignal): Promise<StoredTool[]> {
    return this.#pick().list(signal)
  }

  async test(signal: AbortSignal): Promise<StoredTool[]> {
    return this.#pick().test(signal)
  }

  async request(input: RequestInput): Promise<RawResult> {
    return this.#pick().request(input)
  }

  async call(input: CallInput): Promise<{ result: RawResult; attempts: number }> {
    let instance = this.#pick()
    while (this.#mustWait(instance)) {
      await this.#change(input.signal)
      instance = this.#pick()
    }
    for (const tried = new Set([instance]); ; tried.add(instance)) {
      try {
        const { result, attempts } = await instance.call(input)
        return { result, attempts: attempts + tried.size - 1 }
      } catch (error) {
        if (!mayRepeat(error, input.mustNotRepeat) || input.signal.aborted) throw error
        const next = this.#another(error, tried)
        if (next === undefined) throw error
        instance = next
      } finally {
        if (this.#max > 1) this.#tellEnd()
      }
    }
  }

  async retire(): Promise<void> {
    this.#retired = true
    await Promise.all(this.#instances.map((instance) => instance.retire()))
  }

  async stop(): Promise<void> {
    await Promise.all(this.#instances.map((instance) => instance.stop()))
  }

  /**
   * An instance that starts gets only the call that it is started for: a start may take long, and another instance may be free
   * before. Further calls wait for either.
   */
  #mustWait(instance: ServerConnection): boolean {
    return this.#max > 1 && !instance.isRunning && instance.busy > 0 && instance.starting !== undefined
  }

  #tellEnd(): void {
    this.#ended.resolve()
    this.#ended = Promise.withResolvers()
  }

  async #change(signal: AbortSignal): Promise<void> {
    const starts = this.#instances.flatMap(({ starting }) => starting ?? [])
    const ms = Math.max(...this.#instances.map(({ entry }) => longestStartMs(entry)))
    const deadline = { what: 'an instance that is free', ms, signal, code: 'server_start_timeout' }
    await withDeadline(deadline, () => Promise.race([...starts, this.#ended.promise]))
  }

  /** Picks a free running instance; else starts another; else takes the least busy one that is available. */
  #pick(): ServerConnection {
    if (this.#max === 1) return this.main
    const usable = this.#instances.filter(({ isResting }) => !isResting)
    const free = usable.find(({ isRunning, busy }) => isRunning && busy === 0) ?? usable.find(({ busy }) => busy === 0)
    if (free) return free
    if (this.#instances.length < this.#max) return this.#add()
    return leastBusy(usable.length > 0 ? usable : this.#instances) ?? this.#add()
  }

  /** If one instance can't start, only one that already runs is an alternative. */
  #another(error: unknown, tried: Set<ServerConnection>): ServerConnection | undefined {
    if (tried.size >= MAX_TRIES) return undefined
    const others = this.#instances.filter((instance) => !tried.has(instance))
    const running = leastBusy(others.filter(({ isRunning }) => isRunning))
    if (running || (isAppError(error) && error.details.start === true)) return running
    return others.find(({ isResting }) => !isResting) ?? (this.#instances.length < this.#max ? this.#add() : undefined)
  }

  #add(): ServerConnection {
    const instance = this.#create()
    this.#instances.push(instance)
    // A retired pool must not start anything: nobody would stop it.
    if (this.#retired) void instance.retire()
    return instance
  }
}

function leastBusy(instances: ServerConnection[]): ServerConnection | undefined {
  return instances.reduce<ServerConnection | undefined>(
    (least, instance) => (least === undefined || instance.busy < least.busy ? instance : least),
    undefined
  )
}
