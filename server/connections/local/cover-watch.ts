import { type FSWatcher, statSync, unwatchFile, watch, watchFile } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { hasCode } from '../../lib/errors.ts'

const LOOK_MS = 1000
/** If the system gives us no events: a server may have used them up, and a replaced file is open until we look. */
const BLIND_LOOK_MS = 5
/** Far more than folders can appear while we begin to watch those above. */
const MAX_ROUNDS = 10

/**
 * Notices when one of these files or folders may have been replaced, or has appeared. Also polls, because not every file system sends
 * events. Where the folder of a file does not exist yet, the one above is watched.
 */
export class CoverWatch {
  readonly #onChange: () => void
  readonly #files = new Set<string>()
  readonly #watchers = new Map<string, { watcher: FSWatcher; identity: string }>()
  #blindLook: NodeJS.Timeout | undefined

  constructor(onChange: () => void) {
    this.#onChange = onChange
  }

  add(files: string[]): void {
    for (const file of new Set(files)) {
      if (this.#files.has(file)) continue
      this.#files.add(file)
      watchFile(file, { persistent: false, interval: LOOK_MS }, this.#changed)
    }
    this.#watchAll()
  }

  close(): void {
    for (const file of this.#files) unwatchFile(file, this.#changed)
    for (const { watcher } of this.#watchers.values()) watcher.close()
    this.#files.clear()
    this.#watchers.clear()
    this.#lookOften(false)
  }

  readonly #changed = (): void => {
    // First, so that what happens while the files are covered is noticed too.
    this.#watchAll()
    this.#onChange()
  }

  #watchAll(): void {
    let isBlind = false
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const folders = new Set([...this.#files].map((file) => existingFolder(dirname(file))))
      const unwatched = [...folders].filter((path) => this.#watchers.get(path)?.identity !== identityOf(path))
      if (unwatched.length === 0) break
      isBlind = unwatched.filter((folder) => !this.#watch(folder)).length > 0
      if (isBlind) break
    }
    this.#lookOften(isBlind)
  }

  /** False if the system has no events left. */
  #watch(folder: string): boolean {
    this.#watchers.get(folder)?.watcher.close()
    this.#watchers.delete(folder)
    try {
      const identity = identityOf(folder)
      const watcher = watch(folder, { persistent: false }, (_event, name) => {
        if (name === null || name === basename(folder) || this.#concerns(join(folder, name))) this.#changed()
      })
      watcher.on('error', () => {
        watcher.close()
        // The next look watches it again.
        if (this.#watchers.get(folder)?.watcher === watcher) this.#watchers.delete(folder)
      })
      this.#watchers.set(folder, { watcher, identity })
      return true
    } catch (error) {
      // For a folder that we may not read, or that is gone, the slow look has to do.
      return hasCode(error, 'EACCES', 'EPERM', 'ENOENT', 'ENOTDIR')
    }
  }

  #concerns(path: string): boolean {
    return [...this.#files].some((file) => file === path || file.startsWith(`${path}/`))
  }

  #lookOften(isBlind: boolean): void {
    if (isBlind === (this.#blindLook !== undefined)) return
    clearInterval(this.#blindLook)
    this.#blindLook = undefined
    if (!isBlind) return
    const state = () => [...this.#files].map(identityOf).join()
    let seen = state()
    let looks = 0
    this.#blindLook = setInterval(() => {
      const now = state()
      const isTime = ++looks % (LOOK_MS / BLIND_LOOK_MS) === 0
      if (now !== seen) this.#changed()
      else if (isTime) this.#watchAll()
      seen = now
    }, BLIND_LOOK_MS).unref()
  }
}

function existingFolder(folder: string): string {
  const above = dirname(folder)
  return above === folder || identityOf(folder) !== '' ? folder : existingFolder(above)
}

/** Another one if the file was replaced. Changes of a folder's content don't matter. */
function identityOf(path: string): string {
  try {
    const found = statSync(path, { bigint: true })
    return `${found.dev} ${found.ino} ${found.isDirectory() ? '' : found.ctimeNs}`
  } catch {
    return ''
  }
}
