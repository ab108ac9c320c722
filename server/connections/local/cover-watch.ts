import { type FSWatcher, unwatchFile, watch, watchFile } from 'node:fs'
import { basename, dirname } from 'node:path'

const LOOK_MS = 1000

/** Notices when one of these files may have been replaced. Also polls, because not every file system sends events. */
export class CoverWatch {
  readonly #onChange: () => void
  readonly #watchers = new Map<string, FSWatcher | undefined>()

  constructor(onChange: () => void) {
    this.#onChange = onChange
  }

  add(files: string[]): void {
    for (const file of new Set(files)) {
      if (this.#watchers.has(file)) continue
      this.#watchers.set(file, this.#watch(file))
      watchFile(file, { persistent: false, interval: LOOK_MS }, this.#onChange)
    }
  }

  close(): void {
    for (const [file, watcher] of this.#watchers) {
      watcher?.close()
      unwatchFile(file, this.#onChange)
    }
    this.#watchers.clear()
  }

  #watch(file: string): FSWatcher | undefined {
    const name = basename(file)
    try {
      const watcher = watch(dirname(file), { persistent: false }, (_event, changed) => {
        if (changed === null || changed === name) this.#onChange()
      })
      // Polling continues.
      watcher.on('error', () => watcher.close())
      return watcher
    } catch {
      return undefined
    }
  }
}
