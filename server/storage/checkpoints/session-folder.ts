import { constants } from 'node:fs'
import { copyFile, type FileHandle, link, open, readdir, rename, rm, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { AppError, hasCode } from '../../lib/errors.ts'
import { makeFolder } from '../../lib/files/make-folder.ts'
import { leaseLost } from '../store-errors.ts'
import { writeFully } from './file-io.ts'

type Kind = 'manifest' | 'pack' | 'tmp'

export interface StoredFile {
  name: string
  kind: Kind
  epoch: number
  n: number
}

export interface NewFile {
  name: string
  handle: FileHandle
}

const NAME = /^(\d{1,16})-(\d{1,9})\.(manifest|pack|tmp)$/
const MAX_NAME_ATTEMPTS = 1000

/**
 * The files of one session as one owner sees them: `<epoch>-<n>.<kind>`. It writes and deletes only its own names, and older ones
 * after it has taken over. It never touches what a newer owner uses, because that owner has links under its own names.
 */
export class SessionFolder {
  readonly path: string
  readonly #epoch: number
  readonly #own = new Set<string>()
  #firstN = 0
  #nextN = 0
  #unsynced = false

  constructor(path: string, epoch: number) {
    this.path = path
    this.#epoch = epoch
  }

  file(name: string): string {
    return join(this.path, name)
  }

  /** Newest first, without those of higher epochs. */
  async manifests(): Promise<StoredFile[]> {
    const files = (await listFiles(this.path)).filter((file) => file.epoch <= this.#epoch)
    const taken = files.filter((file) => file.epoch === this.#epoch).map((file) => file.n)
    if (this.#own.size === 0) this.#firstN = this.#nextN = Math.max(0, ...taken) + 1
    return files.filter((file) => file.kind === 'manifest').sort((a, b) => b.epoch - a.epoch || b.n - a.n)
  }

  /** Throws if another owner has committed since, or the session was removed: nobody would read what we write. */
  async assertCurrent(): Promise<void> {
    const files = await listFiles(this.path)
    if (files.length === 0 && this.#own.size > 0) {
      throw new AppError('not-found', 'checkpoint_removed', 'The files of this session were removed; open it again.')
    }
    const newer = files.some(({ kind, epoch, n, name }) => {
      return kind === 'manifest' && !this.#own.has(name) && !this.#isOlder(epoch, n)
    })
    if (newer) throw leaseLost()
  }

  async createPack(): Promise<NewFile> {
    await this.#ensure()
    this.#unsynced = true
    return await this.#claim('pack', async (name) => ({ name, handle: await open(this.file(name), 'wx+', 0o600) }))
  }

  /** Links a pack under our own name. Its former owner may then delete its own name, or append beyond what we know. */
  async adoptPack(name: string): Promise<string> {
    this.#unsynced = true
    return await this.#claim('pack', async (own) => {
      await link(this.file(name), this.file(own)).catch(async (error: unknown) => {
        if (hasCode(error, 'EEXIST', 'ENOENT')) throw error
        // The file system has no hard links.
        await copyFile(this.file(name), this.file(own), constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE)
      })
      return own
    })
  }

  /** Writes a manifest that is durable but not in force yet. Leaves nothing behind when it fails. */
  async draftManifest(lines: Iterable<Buffer>): Promise<NewFile & { bytes: number }> {
    await this.#ensure()
    const draft = await this.#claim('tmp', async (name) => ({ name, handle: await open(this.file(name), 'wx', 0o600) }))
    try {
      let bytes = 0
      for (const line of lines) {
        await writeFully(draft.handle, line, bytes)
        bytes += line.length
      }
      await draft.handle.datasync()
      await this.sync()
      return { ...draft, bytes }
    } catch (error) {
      await this.discard(draft)
      throw error
    }
  }

  /** Puts the draft in force, durably, and returns its name. */
  async publish(draft: NewFile): Promise<string> {
    const name = draft.name.replace(/tmp$/, 'manifest')
    this.#own.add(name)
    try {
      await rename(this.file(draft.name), this.file(name))
      this.#unsynced = true
      await this.sync()
    } catch (error) {
      await this.removeOwn([name])
      await this.discard(draft)
      throw error
    }
    this.#own.delete(draft.name)
    return name
  }

  async discard(file: NewFile): Promise<void> {
    await file.handle.close().catch(() => {})
    await this.removeOwn([file.name])
  }

  /** Makes new names durable. */
  async sync(): Promise<void> {
    if (!this.#unsynced) return
    await syncDir(this.path)
    this.#unsynced = false
  }

  /** Removes the files of earlier owners. Call this only after our own manifest has replaced them. */
  async removeOlder(): Promise<void> {
    const older = (await listFiles(this.path)).filter(({ epoch, n }) => this.#isOlder(epoch, n))
    for (const { name } of older) await rm(this.file(name), { force: true })
  }

  async removeOwn(names: Iterable<string>): Promise<void> {
    for (const name of [...names]) {
      if (this.#own.delete(name)) await unlink(this.file(name)).catch(() => {})
    }
  }

  async removeAllOwn(): Promise<void> {
    await this.removeOwn(this.#own)
  }

  #isOlder(epoch: number, n: number): boolean {
    return epoch < this.#epoch || (epoch === this.#epoch && n < this.#firstN)
  }

  async #claim<T>(kind: Kind, create: (name: string) => Promise<T>): Promise<T> {
    for (let attempt = 0; ; attempt++) {
      const name = `${this.#epoch}-${this.#nextN++}.${kind}`
      try {
        const created = await create(name)
        this.#own.add(name)
        return created
      } catch (error) {
        if (!hasCode(error, 'EEXIST') || attempt === MAX_NAME_ATTEMPTS) throw error
      }
    }
  }

  async #ensure(): Promise<void> {
    const made = makeFolder(this.path)
    if (made) await syncDir(dirname(this.path))
  }
}

export async function listFiles(folder: string): Promise<StoredFile[]> {
  const names = await readdir(folder).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) return []
    throw error
  })
  return names.flatMap((name) => {
    const [, epoch, n, kind] = NAME.exec(name) ?? []
    if (kind !== 'manifest' && kind !== 'pack' && kind !== 'tmp') return []
    return [{ name, kind, epoch: Number(epoch), n: Number(n) }]
  })
}

async function syncDir(path: string): Promise<void> {
  const dir = await open(path, 'r')
  try {
    await dir.sync()
  } finally {
    await dir.close()
  }
}
