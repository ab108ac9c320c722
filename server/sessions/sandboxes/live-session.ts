/**
 * One session on this instance: who works in it, and with which lease. Work happens between `enter` and `leave`; meanwhile the
 * lease is held as busy and no other instance may act. Everything that changes the container runs under one lock. This is not the
 * source of truth: the store is, and the container itself refuses an old epoch.
 */

import { notBegun } from '../../audit/call-end.ts'
import { AppError, isAppError, messageOf } from '../../lib/errors.ts'
import { backoffMs } from '../../lib/waiting/backoff.ts'
import { withDeadline } from '../../lib/waiting/deadline.ts'
import type { KeyedLock } from '../../lib/waiting/keyed-lock.ts'
import type { SessionRecord } from '../../storage/session-store.ts'
import { endProcesses } from './forks/fork-changes.ts'
import { SessionFork } from './forks/session-fork.ts'
import { SessionEvents } from './session-events.ts'
import { type SandboxContext, SessionSandbox } from './session-sandbox.ts'

/** How long an approved call waits for the sandbox image. */
const BUILD_WAIT_MS = 600_000

export interface EnterOptions {
  signal?: AbortSignal | undefined
  /** How long to wait for another instance that works in it; defaults to the options. */
  waitMs?: number | undefined
}

export class LiveSession {
  readonly sessionId: string
  readonly events: SessionEvents
  readonly sandbox: SessionSandbox
  readonly fork: SessionFork
  readonly runningCalls = new Set<string>()
  readonly #context: SandboxContext
  readonly #lock: KeyedLock
  #epoch = 0
  #held = false
  #gone: AppError | undefined
  #inside = 0
  #queued = 0
  #opening = 0
  #present = 0
  #pauseTimer: NodeJS.Timeout | undefined

  constructor(sessionId: string, context: SandboxContext, lock: KeyedLock) {
    this.sessionId = sessionId
    this.#context = context
    this.#lock = lock
    this.events = new SessionEvents(context.deps, sessionId)
    this.sandbox = new SessionSandbox(sessionId, context, this.events)
    this.fork = new SessionFork(sessionId, context)
  }

  get epoch(): number {
    return this.#epoch
  }

  /** Nobody is here and nothing is open, so the manager may drop it. */
  get isForgettable(): boolean {
    return this.#isUnused && this.#present === 0
  }

  /** Nobody works in it, nobody is about to, and no stream is open. */
  get #isUnused(): boolean {
    return this.#inside === 0 && this.#queued === 0 && this.sandbox.state === 'none' && !this.fork.isOpen
  }

  async locked<T>(job: () => Promise<T>): Promise<T> {
    this.#queued += 1
    try {
      return await this.#lock.run(this.sessionId, job)
    } finally {
      this.#queued -= 1
    }
  }

  async enter({ signal, waitMs }: EnterOptions = {}): Promise<void> {
    this.#inside += 1
    clearTimeout(this.#pauseTimer)
    try {
      await this.locked(() => this.#ensureLease(signal, waitMs))
    } catch (error) {
      await this.leave()
      throw error
    }
  }

  async leave(): Promise<void> {
    this.#inside -= 1
    await this.locked(async () => {
      if (this.#inside > 0 || !this.#held) return
      this.#held = false
      await this.#touch(false).catch(() => {}) // otherwise the lease expires by itself
    })
    this.#pauseLater()
  }

  attach(): void {
    this.#present += 1
    clearTimeout(this.#pauseTimer)
  }

  detach(): void {
    this.#present -= 1
    this.#pauseLater()
  }

  /** Extends the lease of a session in use. If the lease is lost, the stream is cut, because the new owner may be acting. */
  async extendLease(): Promise<void> {
    // The sandbox ended, or another instance has it: nobody uses this fork any more.
    if (!this.isInUse && this.sandbox.state === 'none') await this.fork.close()
    if (this.#isUnused) return this.sandbox.disconnect() // the rest of a stream that ended, for example because another instance took over
    if (!this.#held || this.#inside === 0 || (await this.#touch(true))) return
    await this.loseLease()
  }

  /** Stops all work under this lease; the next work must acquire another one. */
  async loseLease(): Promise<void> {
    this.#held = false
    await this.fork.close()
    await this.sandbox.disconnect()
  }

  /** From now on nobody may work here: a caller that was waiting would create the session's record anew. */
  markGone(why = new AppError('not-found', 'unknown_session', 'The session was deleted.')): void {
    this.#gone = why
  }

  async closeFork(): Promise<void> {
    // Without a fork there is nothing to wait for: the lock may be taken for long.
    if (this.fork.isOpen) await this.locked(() => this.#closeFork())
  }

  /** Stores what processes in it have written since the last call: the turn may wait for a person and go on later. */
  async #closeFork(): Promise<void> {
    await endProcesses(this).catch(() => {})
    await this.fork.close()
  }

  /** Someone works in it or is about to, or its container is being changed. If not, the caller can lock it at once. */
  get isInUse(): boolean {
    return this.#inside > 0 || this.#queued > 0
  }

  /** A sandbox is being prepared for it, and locking it waits for that. */
  get isOpening(): boolean {
    return this.#opening > 0
  }

  /** Recycles a session that nobody works in. Returns false if someone came back in the meantime. */
  recycleIfIdle(record: SessionRecord): Promise<boolean> {
    return this.locked(async () => {
      if (this.#inside > 0) return false
      await this.recycle(record)
      return true
    })
  }

  /**
   * Saves a last checkpoint, removes the container and releases the lease. The caller must hold the lock, and the lease under
   * `record`.
   */
  async recycle(record: SessionRecord): Promise<void> {
    const { engine, logger } = this.#context.deps
    await this.#closeFork()
    if (record.containerId) {
      await this.sandbox.finalCheckpoint(record.epoch, record.containerId)
      await this.sandbox.disconnect()
      await engine.remove(record.containerId)
      logger.info({ sessionId: this.sessionId, containerId: record.containerId }, 'Sandbox recycled.')
    }
    await this.#giveUp(record.epoch)
  }

  /**
   * Like `recycle`, but leaves the container to the caller and returns its id: once the files are saved, removing it is not
   * urgent. The caller must hold the lock, and the lease under `record`.
   */
  async saveAndRelease(record: SessionRecord, onSaved: () => void): Promise<string | null> {
    const { containerId, epoch } = record
    await this.#closeFork()
    const isSaved = this.sandbox.isSaved && this.sandbox.containerId === containerId
    if (containerId && !isSaved) await this.sandbox.finalCheckpoint(epoch, containerId)
    onSaved()
    await this.sandbox.disconnect()
    await this.#giveUp(epoch)
    return containerId
  }

  async #giveUp(epoch: number): Promise<void> {
    const { store } = this.#context.deps
    this.#epoch = epoch
    this.#held = false
    await store.unbind(this.sessionId, epoch)
    await store.release(this.sessionId, epoch)
  }

  /** Makes the sandbox usable, for callers that have entered. Resolves when its container answers under our lease. */
  async openSandbox(signal?: AbortSignal): Promise<void> {
    this.#opening += 1
    try {
      await this.locked(() => this.#openSandbox(signal))
    } finally {
      this.#opening -= 1
    }
  }

  /** Like `openSandbox`, for an approved call: if this fails, the call has not begun. While the image is being built, it waits instead of failing. Nothing is locked meanwhile. */
  async openForCall(signal?: AbortSignal): Promise<void> {
    try {
      await this.#openOrBuild(signal)
    } catch (error) {
      throw notBegun(error)
    }
  }

  async #openOrBuild(signal?: AbortSignal): Promise<void> {
    try {
      return await this.openSandbox(signal)
    } catch (error) {
      if (!isAppError(error, 'image_missing')) throw error
      const { engine } = this.#context.deps
      const limit = { what: 'the sandbox image to be built', ms: BUILD_WAIT_MS, signal, code: 'image_missing' }
      if (!(await withDeadline(limit, () => engine.waitForBuild()))) throw error
    }
    await this.openSandbox(signal)
  }

  async #openSandbox(signal?: AbortSignal): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      await this.#ensureLease(signal)
      if (this.sandbox.isOpenUnder(this.#epoch)) return
      try {
        return await this.sandbox.open(this.#epoch)
      } catch (error) {
        // Another instance got the session while we were opening it. Try again; we may get it back.
        if (!isAppError(error, 'lease_lost') && !isAppError(error, 'stale_epoch')) throw error
        await this.loseLease()
        if (attempt === 3) throw error
      }
    }
  }

  async #ensureLease(signal?: AbortSignal, waitMs?: number): Promise<void> {
    signal?.throwIfAborted()
    if (this.#gone) throw this.#gone
    if (this.#held) return
    const { epoch } = await this.#takeLease(signal, waitMs)
    if (epoch === this.#epoch) return
    this.#epoch = epoch
    await this.events.reportInterrupted(epoch, this.runningCalls)
  }

  async #takeLease(signal?: AbortSignal, waitMs?: number): Promise<SessionRecord> {
    const { deps, options } = this.#context
    const until = performance.now() + (waitMs ?? options.acquireTimeoutMs)
    for (let attempt = 1; ; attempt++) {
      const result = await deps.store.acquire(this.sessionId, deps.instanceId, options.leaseMs)
      if (result.granted) {
        this.#held = true
        return result.record
      }
      if (performance.now() >= until) throw sessionBusy()
      const wait = Math.min(result.retryInMs + 1, backoffMs(attempt, { firstMs: 20, maxMs: 500 }))
      await new Promise((resolve) => setTimeout(resolve, wait))
      signal?.throwIfAborted()
    }
  }

  #touch(busy: boolean): Promise<boolean> {
    const { deps, options } = this.#context
    return deps.store.touch(this.sessionId, this.#epoch, { leaseMs: options.leaseMs, busy, activity: true })
  }

  get #isIdle(): boolean {
    return this.#inside === 0 && this.#present === 0 && this.sandbox.state === 'running'
  }

  #pauseLater(): void {
    clearTimeout(this.#pauseTimer)
    if (!this.#isIdle) return
    this.#pauseTimer = setTimeout(() => void this.locked(() => this.#pause()), this.#context.options.pauseAfterMs)
    this.#pauseTimer.unref()
  }

  async #pause(): Promise<void> {
    if (!this.#isIdle) return
    try {
      if (this.#context.deps.engine.pause === undefined) return await this.#releaseEarly()
      await this.#closeFork()
      await this.sandbox.pause()
    } catch (error) {
      this.#context.deps.logger.warn({ sessionId: this.sessionId }, `Not paused: ${messageOf(error)}`)
    }
  }

  /** For engines that can't pause: saves the files and removes the container. The next call gets another one with the files. */
  async #releaseEarly(): Promise<void> {
    const { deps, options } = this.#context
    const taken = await deps.store.acquire(this.sessionId, deps.instanceId, options.leaseMs)
    if (!taken.granted) return
    try {
      await this.recycle(taken.record)
    } catch (error) {
      await deps.store.release(this.sessionId, taken.record.epoch).catch(() => {})
      throw error
    }
  }
}

export function sessionBusy(): AppError {
  return new AppError('conflict', 'session_busy', 'Another instance is working in this session; try again shortly.')
}
