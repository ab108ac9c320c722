import { existsSync, type FSWatcher, unwatchFile, watch, watchFile } from 'node:fs'
import { basename, dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { messageOf } from '../lib/errors.ts'
import { makeFolder } from '../lib/files/make-folder.ts'
import type { Logger } from '../lib/logger.ts'
import { describeProblem, diffRegistries, loadRegistry, type Registry, type RegistryDiff } from './registry.ts'

export interface RegistryWatchOptions {
  file: string
  logger: Logger
  /** Not called while an earlier call still runs. */
  onChange(registry: Registry, diff: RegistryDiff): Promise<void>
  debounceMs?: number
  lookMs?: number
}

const DEBOUNCE_MS = 100
const NAP_MS = 1000
const LOOK_MS = 5000

/**
 * Watches the folder, because editors replace the file. Also polls the file, because a link may lead to another folder and not
 * every file system sends events. While the file can't be read, nothing changes.
 */
export class RegistryWatch {
  readonly #options: RegistryWatchOptions
  #current: Registry
  #watcher: FSWatcher | undefined
  #timer: NodeJS.Timeout | undefined
  #busy: Promise<void> = Promise.resolve()
  #closed = false
  #problem: string | undefined

  constructor(current: Registry, options: RegistryWatchOptions) {
    this.#current = current
    this.#options = options
  }

  start(): void {
    const { file, lookMs = LOOK_MS } = this.#options
    watchFile(file, { persistent: false, interval: lookMs }, this.#soon)
    this.#watchFolder()
    // `watchFile` compares with its own first read, which comes later, so it would miss a change since the file was loaded.
    setTimeout(this.#soon, lookMs).unref()
  }

  #watchFolder(): void {
    const { file, logger } = this.#options
    const name = basename(file)
    try {
      makeFolder(dirname(file))
      this.#watcher = watch(dirname(file), { persistent: false }, (_event, changed) => {
        if (changed === null || changed === name) this.#soon()
      })
      this.#watcher.on('error', (error) => this.#restart(error))
    } catch (error) {
      logger.debug({ err: error }, `Changes of ${file} are noticed a few seconds later.`)
    }
  }

  /** Why the current file can't be used. */
  get problem(): string | undefined {
    return this.#problem
  }

  /** Reads the file now; resolves when the change has been applied. */
  reload(): Promise<void> {
    this.#busy = this.#busy.then(() => this.#apply())
    return this.#busy
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
    this.#watcher?.close()
    unwatchFile(this.#options.file, this.#soon)
  }

  readonly #soon = (): void => {
    if (this.#closed) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.reload(), this.#options.debounceMs ?? DEBOUNCE_MS)
    this.#timer.unref()
  }

  #restart(error: unknown): void {
    this.#options.logger.debug({ err: error }, 'Watching the registry again.')
    this.#watcher?.close()
    if (!this.#closed) setTimeout(() => !this.#closed && this.#watchFolder(), NAP_MS).unref()
  }

  async #apply(): Promise<void> {
    if (this.#closed) return
    const { file, logger, onChange } = this.#options
    try {
      // Not every program replaces a file in one step. A missing file must not stop all servers.
      if (this.#current.servers.size > 0 && !existsSync(file)) await delay(NAP_MS, undefined, { ref: false })
      const next = await loadRegistry(file, { optional: true })
      if (this.#closed) return
      const diff = diffRegistries(this.#current, next)
      const before = new Set(this.#current.problems.map((problem) => describeProblem(file, problem)))
      this.#current = next
      for (const problem of next.problems) {
        const sentence = describeProblem(file, problem)
        if (!before.has(sentence)) logger.warn(sentence)
      }
      this.#problem = undefined
      const same =
        before.size === next.problems.length && next.problems.every((each) => before.has(describeProblem(file, each)))
      if (!same || Object.values(diff).some((entries) => entries.length > 0)) await onChange(next, diff)
    } catch (error) {
      this.#problem = messageOf(error)
      logger.error(`The servers stay as they were: ${messageOf(error)}`)
    }
  }
}
