import { existsSync, type FSWatcher, realpathSync, unwatchFile, watch, watchFile } from 'node:fs'
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
 * Watches the folder of the file, because editors replace the file, and the folder that a link leads to. Also polls the file, because
 * not every file system sends events. While the file can't be read, nothing changes.
 */
export class RegistryWatch {
  readonly #options: RegistryWatchOptions
  #current: Registry
  #watchers: FSWatcher[] = []
  #real = ''
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
    this.#watchFolders()
    // `watchFile` compares with its own first read, which comes later, so it would miss a change since the file was loaded.
    setTimeout(this.#soon, lookMs).unref()
  }

  #watchFolders(): void {
    const { file, logger } = this.#options
    for (const watcher of this.#watchers.splice(0)) watcher.close()
    this.#real = realPath(file)
    try {
      makeFolder(dirname(file))
      for (const path of new Set([file, this.#real])) {
        const watcher = watch(dirname(path), { persistent: false }, (_event, changed) => {
          if (changed === null || changed === basename(path)) this.#soon()
        })
        watcher.on('error', (error) => this.#restart(error))
        this.#watchers.push(watcher)
      }
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
    for (const watcher of this.#watchers) watcher.close()
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
    for (const watcher of this.#watchers.splice(0)) watcher.close()
    if (!this.#closed) setTimeout(() => !this.#closed && this.#watchFolders(), NAP_MS).unref()
  }

  async #apply(): Promise<void> {
    if (this.#closed) return
    const { file, logger, onChange } = this.#options
    if (this.#watchers.length > 0 && realPath(file) !== this.#real) this.#watchFolders()
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

function realPath(file: string): string {
  try {
    return realpathSync(file)
  } catch {
    return file
  }
}
