import { createHash, randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, open, readdir, rename, rm, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode, messageOf } from '../../lib/errors.ts'
import { makeFolder } from '../../lib/files/make-folder.ts'
import type { Logger } from '../../lib/logger.ts'
import { KeyedLock } from '../../lib/waiting/keyed-lock.ts'
import { contentDamaged } from '../checkpoints/checkpoint-errors.ts'
import { readFully, writeFully } from '../checkpoints/file-io.ts'
import type { ObjectContent, ObjectStore } from '../objects/object-store.ts'
import { parseName } from './object-names.ts'

interface CacheOptions {
  dir: string
  maxBytes: number
  objects: Pick<ObjectStore, 'read'>
  logger: Logger
  /** Called for each object that is needed. */
  looked?: (isHit: boolean) => void
}

export interface Draft {
  path: string
  handle: FileHandle
}

const READ_BYTES = 8 * 1024 * 1024
const DRAFT_KEPT_MS = 86_400_000
const LOOK_BYTES = 16 * 1024 * 1024

/**
 * Keeps objects on the local disk, up to a size limit; the least recently used ones go first. Losing it costs only time. Objects never
 * change, and their names contain their hash, so what an earlier process left is checked before it is used.
 */
export class ObjectCache {
  readonly #options: CacheOptions
  readonly #checked = new Set<string>()
  readonly #lock = new KeyedLock()
  /** Bytes added since the folder was last measured. */
  #addedBytes = LOOK_BYTES

  constructor(options: CacheOptions) {
    this.#options = options
  }

  /** Opens an object for reading, and fetches it first if necessary. The caller closes it. */
  async open(key: string): Promise<FileHandle> {
    const name = nameOf(key)
    const handle = await this.#lock.run(name, async () => {
      const known = await this.#known(name)
      this.#options.looked?.(known !== undefined)
      return known ?? (await this.#fetch(key, name))
    })
    return handle
  }

  async readAll(key: string): Promise<Buffer> {
    const handle = await this.open(key)
    try {
      return await readFully(handle, 0, (await handle.stat()).size)
    } finally {
      await handle.close()
    }
  }

  /** A file that will become an object. */
  async draft(): Promise<Draft> {
    makeFolder(this.#options.dir)
    const path = join(this.#options.dir, `${randomUUID()}.draft`)
    return { path, handle: await this.withRoom(() => open(path, 'wx+', 0o600)) }
  }

  /** Writes to the disk of the cache. If that is full, all copies go, and it is done again. */
  async withRoom<T>(write: () => Promise<T>): Promise<T> {
    try {
      return await write()
    } catch (error) {
      if (!hasCode(error, 'ENOSPC') && !hasCode(error, 'EDQUOT')) throw error
      const { logger, dir } = this.#options
      logger.warn({ dir }, 'The disk of the object cache is full: all copies of objects are deleted.')
      await this.#lock.run('', () => this.#removeOldest(0))
      return write()
    }
  }

  /** Keeps a draft under the name of the object that was made from it, and closes it. */
  async keep(key: string, { path, handle }: Draft): Promise<void> {
    const name = nameOf(key)
    const { size } = await handle.stat()
    await handle.close()
    await rename(path, this.#file(name))
    this.#checked.add(name)
    await this.#limit(size)
  }

  /** Keeps the content of an object that was just stored. */
  async add(key: string, content: Uint8Array): Promise<void> {
    const draft = await this.draft()
    try {
      await this.withRoom(() => writeFully(draft.handle, content, 0))
    } catch (error) {
      await this.discard(draft)
      throw error
    }
    await this.keep(key, draft)
  }

  async discard({ path, handle }: Draft): Promise<void> {
    await handle.close().catch(() => {})
    await rm(path, { force: true })
  }

  /** Call this when the bytes turned out to be wrong: they are fetched again. */
  async drop(key: string): Promise<void> {
    this.#checked.delete(nameOf(key))
    await rm(this.#file(nameOf(key)), { force: true })
  }

  async #known(name: string): Promise<FileHandle | undefined> {
    const path = this.#file(name)
    const handle = await open(path, 'r').catch(noFile)
    if (!handle) return undefined
    if (!this.#checked.has(name)) {
      if ((await hashOf(path)) !== parseName(name)?.hash) {
        await handle.close()
        await rm(path, { force: true })
        return undefined
      }
      this.#checked.add(name)
    }
    const now = new Date()
    await utimes(path, now, now).catch(noFile)
    return handle
  }

  async #fetch(key: string, name: string): Promise<FileHandle> {
    const draft = await this.draft()
    try {
      let done = 0
      for await (const bytes of partsOf(this.#options.objects, key)) {
        const at = done
        await this.withRoom(() => writeFully(draft.handle, bytes, at))
        done += bytes.length
      }
    } catch (error) {
      await this.discard(draft)
      throw error
    }
    await rename(draft.path, this.#file(name))
    this.#checked.add(name)
    await this.#limit(parseName(name)?.bytes ?? 0)
    return draft.handle
  }

  /** Open files stay readable when they are deleted. */
  async #limit(addedBytes: number): Promise<void> {
    this.#addedBytes += addedBytes
    if (this.#addedBytes < Math.min(LOOK_BYTES, this.#options.maxBytes / 4)) return
    this.#addedBytes = 0
    await this.#lock
      .run('', () => this.#removeOldest(this.#options.maxBytes))
      .catch((error: unknown) => {
        this.#options.logger.warn({ err: error }, `The cache of objects was not cleared: ${messageOf(error)}`)
      })
  }

  async #removeOldest(maxBytes: number): Promise<void> {
    const { dir } = this.#options
    const files: { name: string; bytes: number; usedAt: number }[] = []
    for (const name of await readdir(dir)) {
      const info = await stat(join(dir, name)).catch(noFile)
      if (info) files.push({ name, bytes: info.size, usedAt: info.mtimeMs })
    }
    files.sort((a, b) => a.usedAt - b.usedAt)
    let total = files.reduce((sum, { bytes }) => sum + bytes, 0)
    for (const { name, bytes, usedAt } of files) {
      const isDraft = name.endsWith('.draft')
      if (isDraft ? Date.now() - usedAt < DRAFT_KEPT_MS : total <= maxBytes) continue
      await rm(join(dir, name), { force: true })
      this.#checked.delete(name)
      total -= bytes
    }
  }

  #file(name: string): string {
    return join(this.#options.dir, name)
  }
}

/** Reads a whole object past the cache, and checks its hash. */
export async function readObject(objects: Pick<ObjectStore, 'read'>, key: string): Promise<Buffer> {
  const parts: Buffer[] = []
  for await (const part of partsOf(objects, key)) parts.push(part)
  return Buffer.concat(parts)
}

/** Throws at the end if the bytes are not the ones that the name says. */
async function* partsOf(objects: Pick<ObjectStore, 'read'>, key: string): AsyncGenerator<Buffer> {
  const digest = createHash('sha256')
  const { bytes: size = 0, hash } = parseName(nameOf(key)) ?? {}
  for (let done = 0; done < size; ) {
    const part = await objects.read(key, done, Math.min(READ_BYTES, size - done))
    if (!part || part.bytes.length === 0) throw contentDamaged()
    digest.update(part.bytes)
    yield part.bytes
    done += part.bytes.length
  }
  if (digest.digest('hex') !== hash) throw contentDamaged()
}

export function draftContent({ handle }: Draft, bytes: number): ObjectContent {
  return { bytes, read: (offset, length) => readFully(handle, offset, length) }
}

export async function hashOf(path: string): Promise<string> {
  const digest = createHash('sha256')
  for await (const chunk of createReadStream(path, { highWaterMark: 1024 * 1024 })) digest.update(chunk)
  return digest.digest('hex')
}

function nameOf(key: string): string {
  return key.slice(key.lastIndexOf('/') + 1)
}

function noFile(error: unknown): undefined {
  if (!hasCode(error, 'ENOENT')) throw error
}
