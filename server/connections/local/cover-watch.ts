import { type FSWatcher, unwatchFile, watch, watchFile } from 'node:fs'
import { basename, dirname } from 'node:path'

const LOOK_MS = 1000

/** Tells when one of these files may have been replaced. Looks now and then too, because not every disk tells. */
export class CoverWatch {
  readonly #onChange: () => void
  readonly #watchers = new Map<string, FSWatcher | undefined>()

  constructor(onChange: () => void) {
    this.#onChange = onChange
  }

  add(files: string[]): void {
    for (const file of files.filter((each) => !this.#watchers.has(each))) {
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
      // Looking now and then goes on.
      watcher.on('error', () => watcher.close())
      return watcher
    } catch {
      return undefined
    }
  }
}
