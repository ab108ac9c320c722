/**
 * The fork of one session: a container with a copy of the workspace, in which calls run before a person has decided. A session has at
 * most one, on the instance that holds its lease. It is bound to nothing in the store: what it did is in the checkpoint as an open
 * change set, and a fork that is lost is built again from the workspace and that set.
 */
import type { ChangesResult } from '../../../../workspace-server/protocol.ts'
import { AppError, messageOf } from '../../../lib/errors.ts'
import type { CallOptions, ToolResult, WorkspaceConnection } from '../../../sandbox/port.ts'
import type { Checkpoint, StoredChange } from '../../../storage/checkpoint-store.ts'
import type { SandboxContext } from '../session-sandbox.ts'
import { claimWarm, openFresh } from '../warm-pool.ts'
import { WorkspaceFiles } from '../workspace-files.ts'
import { ForkEntries } from './fork-entries.ts'

export interface ForkRequest {
  epoch: number
  /** The change set that it works on: `call:` or `review:` with an id. */
  purpose: string
  /** Changes of an earlier fork for the same purpose. */
  changes: readonly StoredChange[]
  checkpoint: () => Checkpoint
}

export class Fork {
  readonly connection: WorkspaceConnection
  readonly epoch: number
  readonly entries: ForkEntries
  purpose: string
  readonly #files: WorkspaceFiles
  /** Whether a call may have left processes running, which may have changed files since. */
  #mayRun = false
  /** Whether it has something that is in no change set, because it can't be read or stored. */
  #hasUndecided = false
  #isSettled = false
  /** The clean-up after the last call; undefined before it begins. Resolves to false if calls have left something outside of the files. */
  #tidied: Promise<boolean> | undefined = Promise.resolve(true)

  constructor(connection: WorkspaceConnection, { epoch, purpose, changes, checkpoint }: ForkRequest) {
    this.connection = connection
    this.epoch = epoch
    this.purpose = purpose
    this.entries = new ForkEntries(checkpoint, changes)
    this.#files = new WorkspaceFiles(connection, this.entries)
  }

  async restore(): Promise<void> {
    const { failed } = await this.#files.restore()
    const [first] = failed
    if (first)
      throw new AppError('unavailable', 'fork_failed', `The fork could not get ${first.path}: ${first.reason}.`)
  }

  async call(name: string, args: Record<string, unknown>, options: CallOptions): Promise<ToolResult> {
    const wasRunning = this.#mayRun
    this.#mayRun = true
    this.#tidied = undefined
    const result = await this.connection.callTool(name, args, options)
    this.#mayRun = wasRunning || hasLeftRunning(result)
    return result
  }

  /** Its changes are in the workspace now. Processes and temporary files of its calls are not, so they end here. */
  settle(): void {
    this.entries.markApplied()
    this.#isSettled = true
    void this.#tidy()
  }

  /** Ends what calls have left running, so that the next diff has everything. Resolves to false if something may go on. */
  async endProcesses(): Promise<boolean> {
    if (!this.#mayRun) return true
    this.#mayRun = !(await this.#tidy())
    return !this.#mayRun
  }

  #tidy(): Promise<boolean> {
    this.#tidied ??= this.connection.tidy().catch(() => false)
    return this.#tidied
  }

  /** Whether processes that a call left running may change files that nobody has decided about. */
  get mayGoOn(): boolean {
    return this.#mayRun && !this.#isSettled && this.connection.isOpen && !this.connection.isTampered
  }

  /** Everything that it has changed. The content is in the checkpoint, and is lost unless the next commit names it. */
  async diff(): Promise<{ changes: StoredChange[]; skipped: ChangesResult['skipped'] }> {
    const skipped = await this.#sync()
    return { changes: this.entries.changes, skipped }
  }

  async #sync(): Promise<ChangesResult['skipped']> {
    const skipped = await this.#files.sync()
    this.#hasUndecided ||= skipped.length > 0
    return skipped
  }

  /** Whether the fork has nothing that waits for another decision, which would be mixed with this one. */
  mayServe({ epoch, purpose }: ForkRequest): boolean {
    const { connection, entries } = this
    if (!connection.isOpen || connection.isTampered || this.epoch !== epoch) return false
    const isForAnother = this.#isSettled || this.purpose !== purpose
    if (isForAnother && this.#hasUndecided) return false
    return this.purpose === purpose || entries.changes.length === 0
  }

  /** If the workspace has changed, writes the differences, which is much less than all files. Returns how many there were. */
  async follow({ checkpoint, changes, purpose }: ForkRequest): Promise<number> {
    const isForAnother = purpose !== this.purpose
    if (isForAnother && !(await this.#tidy()))
      throw new AppError('unavailable', 'fork_failed', 'Something of earlier calls is left in the fork.')
    const isAsItWas = !(isForAnother && this.#mayRun)
    if (isForAnother) this.#mayRun = false
    if (isAsItWas && this.entries.isBasedOn(checkpoint().entries)) return 0
    // Processes that still run in the fork, or ran until now, may have written since.
    await this.#sync()
    if (isForAnother && this.#hasUndecided)
      throw new AppError('unavailable', 'fork_failed', 'The fork has files that nobody could decide about.')
    const has = this.entries.entries
    this.entries.rebase(changes)
    const different = this.entries.differenceFrom(has)
    await this.#files.write(different, has)
    return different.length
  }
}

export function hasLeftRunning({ structuredContent }: ToolResult): boolean {
  return structuredContent?.leftRunning === true
}

export class SessionFork {
  readonly #sessionId: string
  readonly #context: SandboxContext
  #fork: Fork | undefined
  /** The removal of the previous fork. */
  #leaving: Promise<void> | undefined

  constructor(sessionId: string, context: SandboxContext) {
    this.#sessionId = sessionId
    this.#context = context
  }

  /** Also while its container is being removed. */
  get isOpen(): boolean {
    return this.#fork !== undefined || this.#leaving !== undefined
  }

  /** The change set that the open fork works on. */
  get purpose(): string | undefined {
    return this.#fork?.purpose
  }

  /** The fork, if processes may still change files in it under this epoch. */
  goingOn(epoch: number): Fork | undefined {
    return this.#fork?.mayGoOn && this.#fork.epoch === epoch ? this.#fork : undefined
  }

  /** A mode that was chosen before the sandboxes got a network does not open forks with one. */
  checkAllowed(): void {
    const { network } = this.#context.options
    if (network === 'none') return
    const message = `Sandboxes can reach the network "${network}", so nothing runs ahead of a decision.`
    throw new AppError('unavailable', 'fork_failed', message)
  }

  /** The caller holds the session's lock and has just synced the workspace. */
  async open(request: ForkRequest): Promise<Fork> {
    const open = await this.#followed(request)
    if (open) return open
    // Removing it takes longer than opening the next one.
    await this.#leaving
    void this.#letGo()
    const { places, deps } = this.#context
    const began = performance.now()
    const refused = (error: unknown) => {
      deps.forked?.({ ms: performance.now() - began, error })
      throw error
    }
    await places.reserveFork(this.#sessionId).catch(refused)
    try {
      const fork = await this.#create(request)
      this.#fork = fork
      const { containerId } = fork.connection
      const ms = Math.round(performance.now() - began)
      deps.logger.info(
        { sessionId: this.#sessionId, containerId, files: fork.entries.entries.size, ms },
        'Fork opened.'
      )
      deps.forked?.({ ms })
      return fork
    } catch (error) {
      places.releaseFork(this.#sessionId)
      return refused(error)
    }
  }

  /** The fork that is there, in step with the workspace. Undefined if it can't be used for this request. */
  async #followed(request: ForkRequest): Promise<Fork | undefined> {
    const fork = this.#fork
    if (!fork?.mayServe(request)) return undefined
    const { logger } = this.#context.deps
    const began = performance.now()
    const about = { sessionId: this.#sessionId, containerId: fork.connection.containerId }
    try {
      const changed = await fork.follow(request)
      fork.purpose = request.purpose
      const ms = Math.round(performance.now() - began)
      if (changed > 0) logger.info({ ...about, changed, ms }, 'Fork brought up to date.')
      return fork
    } catch (error) {
      logger.warn({ ...about, err: error }, `A fork is replaced: ${messageOf(error)}`)
      return undefined
    }
  }

  async #create(request: ForkRequest): Promise<Fork> {
    const { deps, made, owner, pool } = this.#context
    const warm = await claimWarm(pool, deps, made, request.epoch)
    const connection = warm ?? (await openFresh(deps.engine, await owner(), request.epoch, made))
    try {
      const fork = new Fork(connection, request)
      await fork.restore()
      return fork
    } catch (error) {
      await this.#remove(connection)
      throw error
    }
  }

  /** Its changes are in the workspace now, so it may serve as the next fork. */
  settle(purpose: string): void {
    if (this.#fork?.purpose === purpose) this.#fork.settle()
  }

  async close(): Promise<void> {
    await this.#letGo()
  }

  /** It is gone for us at once; resolves when its container is removed, and the one before. */
  #letGo(): Promise<void> | undefined {
    const fork = this.#fork
    if (!fork) return this.#leaving
    this.#fork = undefined
    this.#context.places.releaseFork(this.#sessionId)
    const leaving = Promise.all([this.#leaving, this.#remove(fork.connection)]).then(() => {
      if (this.#leaving === leaving) this.#leaving = undefined
    })
    this.#leaving = leaving
    return leaving
  }

  async #remove(connection: WorkspaceConnection): Promise<void> {
    const { deps, made } = this.#context
    const { containerId } = connection
    await connection.close().catch(() => {})
    try {
      await deps.engine.remove(containerId)
    } catch (error) {
      deps.logger.warn({ containerId }, `A fork is left for the janitor: ${messageOf(error)}`)
    } finally {
      made.delete(containerId)
    }
  }
}
