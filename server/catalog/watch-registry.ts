import { type FSWatcher, mkdirSync, watch } from 'node:fs'
import { basename, dirname } from 'node:path'
import { messageOf } from '../lib/errors.ts'
import type { Logger } from '../lib/logger.ts'
import { describeProblem, diffRegistries, loadRegistry, type Registry, type RegistryDiff } from './registry.ts'

export interface RegistryWatchOptions {
  file: string
  logger: Logger
  /** Never while an earlier one runs. */
  onChange(registry: Registry, diff: RegistryDiff): Promise<void>
  debounceMs?: number
}

const DEBOUNCE_MS = 100
const NAP_MS = 1000

/** Watches the folder, because editors replace the file. A file that can't be read meanwhile changes nothing. */
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
    const { file, logger } = this.#options
    const name = basename(file)
    try {
      mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
      this.#watcher = watch(dirname(file), { persistent: false }, (_event, changed) => {
        if (changed === null || changed === name) this.#soon()
      })
      this.#watcher.on('error', (error) => this.#restart(error))
    } catch (error) {
      logger.warn(`Changes of ${file} are not noticed: ${messageOf(error)}`)
    }
  }

  /** Why the file as it stands now can't be used. */
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
  }

  #soon(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.reload(), this.#options.debounceMs ?? DEBOUNCE_MS)
    this.#timer.unref()
  }

  #restart(error: unknown): void {
    this.#options.logger.debug({ err: error }, 'Watching the registry anew.')
    this.#watcher?.close()
    if (!this.#closed) setTimeout(() => !this.#closed && this.start(), NAP_MS).unref()
  }

  async #apply(): Promise<void> {
    if (this.#closed) return
    const { file, logger, onChange } = this.#options
    try {
      const next = await loadRegistry(file, { optional: true })
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
