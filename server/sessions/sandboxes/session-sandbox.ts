/**
 * The container of one session on this instance, and the stream into it: found, woken, repaired, replaced or created as needed.
 * It acts only under an epoch whose lease its owner holds; the container itself refuses an older one.
 */
import { AppError, isAppError, messageOf } from '../../lib/errors.ts'
import { plural } from '../../lib/plural.ts'
import type { ContainerState, SandboxOwner, WorkspaceConnection } from '../../sandbox/port.ts'
import type { Checkpoint, StoredChangeSet } from '../../storage/checkpoint-store.ts'
import { leaseLost } from '../../storage/store-errors.ts'
import { notKeptText } from './restoring/not-kept-text.ts'
import type { SandboxPlaces } from './sandbox-places.ts'
import type { SessionEvents } from './session-events.ts'
import type { SessionsDeps, SessionsOptions } from './session-options.ts'
import { claimWarm, openFresh, type WarmPool } from './warm-pool.ts'
import { type AppliedChanges, type SyncOptions, WorkspaceFiles } from './workspace-files.ts'

export interface SandboxContext {
  deps: SessionsDeps
  options: SessionsOptions
  pool: WarmPool
  places: SandboxPlaces
  /** Ids of containers that this instance created and that no session is bound to yet. */
  made: Set<string>
  owner: () => Promise<SandboxOwner>
}

const BEYOND_USE = new Set(['container_restarted', 'takeover_failed', 'server_crashed'])

export class SessionSandbox {
  readonly #sessionId: string
  readonly #context: SandboxContext
  readonly #events: SessionEvents
  #epoch = 0
  #connection: WorkspaceConnection | undefined
  #files: WorkspaceFiles | undefined
  #saved: Checkpoint | undefined
  #paused = false
  /** Whether a call may have changed files since they were last saved. */
  #isDirty = true
  /** Whether the last save checked all content. */
  #isVerified = false

  constructor(sessionId: string, context: SandboxContext, events: SessionEvents) {
    this.#sessionId = sessionId
    this.#context = context
    this.#events = events
  }

  get state(): 'none' | 'running' | 'paused' {
    if (!this.#connection?.isOpen) return 'none'
    return this.#paused ? 'paused' : 'running'
  }

  get containerId(): string | undefined {
    return this.#connection?.isOpen ? this.#connection.containerId : undefined
  }

  /** For making a call. Its changes are not saved until the next checkpoint. */
  get connection(): WorkspaceConnection {
    this.#isDirty = true
    return this.#open
  }

  get #open(): WorkspaceConnection {
    if (!this.#connection) throw leaseLost()
    return this.#connection
  }

  get isDirty(): boolean {
    return this.#isDirty
  }

  /** Everything was saved before the container was paused, so nothing can have changed since. */
  get isSaved(): boolean {
    return this.state === 'paused' && this.#isVerified && !this.#isDirty
  }

  async ping(): Promise<void> {
    await this.#open.ping()
  }

  isOpenUnder(epoch: number): boolean {
    return this.#epoch === epoch && this.state === 'running'
  }

  /** Makes the session's container usable under this epoch, whatever its state. */
  async open(epoch: number): Promise<void> {
    const known = (await this.#context.deps.store.get(this.#sessionId))?.containerId ?? null
    const mine = this.containerId
    if (epoch === this.#epoch && mine && mine === known) return this.wake()
    await this.disconnect()
    this.#epoch = epoch
    // A store that was emptied knows of no container, but we may: then we continue with ours.
    const containerId = known ?? mine
    if (containerId) {
      const state = await this.#context.deps.engine.inspect(containerId)
      if (state?.running && (await this.#resume(containerId))) return this.#reserveAndBind(containerId)
      await this.#replaceDead(containerId, state)
    }
    await this.#provision()
  }

  /** The last checkpoint of a container that is about to be removed. */
  async finalCheckpoint(epoch: number, containerId: string): Promise<void> {
    if (this.containerId !== containerId) {
      await this.disconnect()
      this.#epoch = epoch
      const state = await this.#context.deps.engine.inspect(containerId)
      if (!state?.running || !(await this.#resume(containerId))) return
    }
    await this.wake()
    await this.#sync({ full: true })
  }

  /**
   * Stores the changes. A failure is shown and returned as a sentence; the next call tries again, because this one has succeeded.
   */
  async checkpoint(options: SyncOptions = {}): Promise<string | undefined> {
    try {
      await this.#sync(options)
      return undefined
    } catch (error) {
      this.#context.deps.logger.error({ err: error, sessionId: this.#sessionId }, 'A checkpoint failed.')
      const sentence = `The files could not be saved: ${messageOf(error)}`
      await this.#notice('checkpoint_failed', sentence)
      return sentence
    }
  }

  /** A stored version of the workspace, if the sandbox is open. */
  version(id: string): StoredChangeSet | undefined {
    return this.#files?.version(id)
  }

  /** Puts changes into the workspace and stores them as a version; see `WorkspaceFiles.apply`. */
  async applyChanges(input: AppliedChanges): Promise<StoredChangeSet | null> {
    if (!this.#files) throw leaseLost()
    this.#isDirty = true
    const version = await this.#files.apply(input)
    this.#isDirty = false
    this.#isVerified = false
    return version
  }

  /** Runs a job with the session's checkpoint between two syncs, so that content which it adds is in its own commit. */
  exclusively<T>(job: (checkpoint: Checkpoint) => Promise<T>): Promise<T> {
    if (!this.#files) throw leaseLost()
    const { saved } = this
    return this.#files.inTurn(() => job(saved))
  }

  /** The files and change sets as last saved. */
  get saved(): Checkpoint {
    if (!this.#saved) throw leaseLost()
    return this.#saved
  }

  /** The same, if nobody has taken over the session since this epoch. */
  savedUnder(epoch: number): Checkpoint | undefined {
    return this.#epoch === epoch && this.state !== 'none' ? this.#saved : undefined
  }

  /** Ends a sandbox in which a process imitated its server. The next call gets a new one with the files as last saved. */
  async endIfTampered(): Promise<void> {
    const { engine, store, logger } = this.#context.deps
    if (!this.#connection?.isTampered) return
    const { containerId } = this.#connection
    await this.#notice('sandbox_tampered', "A command imitated the sandbox's own server, so the sandbox was ended.")
    await this.disconnect()
    try {
      await engine.remove(containerId)
      await store.unbind(this.#sessionId, this.#epoch)
    } catch (error) {
      // The call itself has succeeded. The next one to open the sandbox ends every process in it.
      logger.warn({ err: error, containerId }, `A tampered sandbox is left for the next call: ${messageOf(error)}`)
    }
  }

  async pause(): Promise<void> {
    if (this.state !== 'running') return
    await this.#sync({ full: true })
    await this.#context.deps.engine.pause?.(this.#open.containerId)
    this.#paused = true
  }

  async wake(): Promise<void> {
    if (!this.#paused) return
    await this.#context.deps.engine.unpause?.(this.#open.containerId)
    this.#paused = false
  }

  /** Closes the stream into the container, but leaves the container. */
  async disconnect(): Promise<void> {
    const connection = this.#connection
    this.#connection = undefined
    this.#files = undefined
    this.#saved = undefined
    this.#paused = false
    await connection?.close()
  }

  /** Opens a stream to a container that has files in it; returns false if it is unusable. */
  async #resume(containerId: string): Promise<boolean> {
    const { engine, logger } = this.#context.deps
    let connection: WorkspaceConnection
    try {
      connection = await engine.connect(containerId, this.#epoch, { resume: true })
    } catch (error) {
      if (!isAppError(error) || !(BEYOND_USE.has(error.code) || (await this.#isForgedEpoch(error)))) throw error
      logger.warn({ sessionId: this.#sessionId, containerId }, messageOf(error))
      return false
    }
    await this.#use(connection)
    await this.checkpoint({ everything: true })
    logger.info({ sessionId: this.#sessionId, containerId, epoch: this.#epoch }, 'Sandbox taken over.')
    return true
  }

  /**
   * The store hands out an epoch before any container hears of it. So an epoch above the store's was made up by a command in the container.
   */
  async #isForgedEpoch(error: AppError): Promise<boolean> {
    if (error.code !== 'stale_epoch') return false
    return (await this.#context.deps.store.get(this.#sessionId))?.epoch === this.#epoch
  }

  async #provision(): Promise<void> {
    const { deps, made, pool } = this.#context
    await this.#reserve()
    let containerId: string | undefined
    try {
      const warm = await claimWarm(pool, deps, made, this.#epoch)
      const connection = warm ?? (await this.#openCold())
      containerId = connection.containerId
      await this.#use(connection)
      await this.#restore()
      // Bind only now: a crash half-way leaves an orphan, never a session with half of its files.
      await this.#bind(containerId)
      deps.logger.info(
        { sessionId: this.#sessionId, containerId, warm: warm !== undefined, epoch: this.#epoch },
        'Sandbox started.'
      )
    } catch (error) {
      await this.disconnect()
      if (containerId) await deps.engine.remove(containerId).catch(() => {})
      await deps.store.unbind(this.#sessionId, this.#epoch).catch(() => {})
      throw error
    } finally {
      if (containerId) made.delete(containerId)
    }
  }

  async #openCold(): Promise<WorkspaceConnection> {
    const { deps, made, owner } = this.#context
    return openFresh(deps.engine, await owner(), this.#epoch, made)
  }

  async #use(connection: WorkspaceConnection): Promise<void> {
    const { checkpoints, logger } = this.#context.deps
    const checkpoint = await checkpoints.open(this.#sessionId, this.#epoch)
    this.#connection = connection
    this.#isDirty = true
    this.#files = new WorkspaceFiles(connection, checkpoint)
    this.#saved = checkpoint
    this.#paused = false
    const closed = connection.closed.then(() => checkpoint.close())
    closed.catch((error) => logger.warn({ err: error }, `A checkpoint was not closed: ${messageOf(error)}`))
  }

  async #restore(): Promise<void> {
    if (!this.#files) return
    const { files, failed } = await this.#files.restore()
    const [tooMuch] = failed.filter(({ noRoom }) => noRoom)
    // A command that ran without this file would create it anew, and overwrite the saved one.
    if (tooMuch) throw noRoomForFiles(tooMuch.path)
    if (files > 0) await this.#notice('files_restored', `A new sandbox is ready, with your ${plural(files, 'file')}.`)
    await this.#tellNotKept('Not restored', failed)
  }

  async #reserveAndBind(containerId: string): Promise<void> {
    await this.#reserve()
    await this.#bind(containerId)
  }

  async #reserve(): Promise<void> {
    await this.#context.places.reserve(this.#sessionId, this.#epoch)
  }

  async #bind(containerId: string): Promise<void> {
    if (!(await this.#context.deps.store.bind(this.#sessionId, this.#epoch, containerId))) throw leaseLost()
  }

  /** Tells the user that a container died or lost its files, and removes what is left of it. */
  async #replaceDead(containerId: string, state: ContainerState | null): Promise<void> {
    const { engine, store, logger } = this.#context.deps
    const message = `The sandbox ended (${causeOfDeath(state)}) and is replaced; files are as of the last finished call.`
    await this.#notice('sandbox_replaced', message)
    await engine.remove(containerId).catch((error) => logger.warn({ containerId }, messageOf(error)))
    await store.unbind(this.#sessionId, this.#epoch)
  }

  async #sync(options: SyncOptions = {}): Promise<void> {
    if (!this.#files) throw leaseLost()
    this.#isDirty = false
    this.#isVerified = false
    const notKept = await this.#files.sync(options).catch((error) => {
      this.#isDirty = true
      throw error
    })
    this.#isVerified = options.full === true
    await this.#tellNotKept('Not saved outside the sandbox', notKept)
  }

  async #tellNotKept(what: string, entries: { path: string; reason: string }[]): Promise<void> {
    const text = notKeptText(what, entries)
    if (text !== undefined) await this.#notice('files_not_kept', text)
  }

  #notice(code: Parameters<SessionEvents['notice']>[0], message: string): Promise<void> {
    return this.#events.notice(code, message, this.#epoch)
  }
}

function noRoomForFiles(path: string): AppError {
  const message = `The saved files do not fit into a new sandbox (${path.slice(0, 100)}): raise SANDBOX_WORKSPACE_MB and SANDBOX_MEMORY_MB to their former values. Nothing is lost.`
  return new AppError('unavailable', 'files_do_not_fit', message)
}

function causeOfDeath(state: ContainerState | null): string {
  if (!state) return 'it was removed'
  if (state.oomKilled) return 'it ran out of memory'
  if (!state.running) return `exit code ${state.exitCode}`
  return 'its server could not be started again'
}
