/**
 * A backup is a folder with copies of files and a manifest with the hash of each. Only its owner can read it. This code copies
 * and checks files; it does not know what they mean.
 */
import { createHash } from 'node:crypto'
import { constants, createReadStream, createWriteStream } from 'node:fs'
import { type FileHandle, open, readdir, realpath, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { AppError, hasCode, messageOf } from '../../lib/errors.ts'
import { makeFolder } from '../../lib/files/make-folder.ts'

export interface BackupManifest {
  version: 1
  madeAt: string
  program: string
  store: 'embedded' | 'redis'
  files: { path: string; size: number; sha256: string }[]
}

const MANIFEST = 'manifest.json'
const MAX_MANIFEST_BYTES = 512 * 1024 * 1024
const NAME = '(?!\\.{1,2}$)[^/\\0]+'
/** The files that `backup` writes. A manifest that names anything else (a lock, for example) was not written by it. */
const PATHS = new RegExp(
  `^(store\\.db|redis\\.jsonl|grants\\.json|checkpoints/[0-9a-f]{64}/${NAME}|(audit|logins|config)/${NAME})$`
)

export class BackupFolder {
  readonly dir: string
  readonly #files = new Map<string, BackupManifest['files'][number]>()

  constructor(dir: string) {
    this.dir = dir
  }

  get count(): number {
    return this.#files.size
  }

  /** Where to write a file of the backup; call `add` afterwards. */
  async place(path: string): Promise<string> {
    const to = join(this.dir, path)
    makeFolder(dirname(to))
    return to
  }

  /** Adds a file that was written into the folder. */
  async add(path: string): Promise<void> {
    this.#files.set(path, { path, ...(await hashFile(this.dir, path)) })
  }

  /** Copies the first `bytes` of a file, or all of it. */
  async copy(from: string, path: string, bytes = Number.POSITIVE_INFINITY): Promise<void> {
    this.#files.set(path, { path, ...(await copyFile(from, await this.place(path), bytes)) })
  }

  async drop(paths: Iterable<string>): Promise<void> {
    for (const path of paths) {
      this.#files.delete(path)
      await rm(join(this.dir, path), { force: true })
    }
  }

  async finish(store: BackupManifest['store'], program: string): Promise<void> {
    const files = [...this.#files.values()].toSorted((a, b) => (a.path < b.path ? -1 : 1))
    const manifest: BackupManifest = { version: 1, madeAt: new Date().toISOString(), program, store, files }
    await writeFile(join(this.dir, MANIFEST), `${JSON.stringify(manifest, null, 1)}\n`, { mode: 0o600, flush: true })
  }
}

/** Throws `conflict` if the folder is not empty. Otherwise the folder exists afterwards and only its owner can read it. */
export async function makeEmptyFolder(dir: string, what: string): Promise<void> {
  makeFolder(dir)
  if ((await readdir(dir)).length === 0) return
  throw new AppError('conflict', 'folder_not_empty', `${what} ${dir} is not empty: choose another folder.`)
}

/** Replaces the error of a full disk, which names no folder, and returns all others unchanged. */
export function explainNoSpace(error: unknown, message: string): unknown {
  const isNoSpace = hasCode(error, 'ENOSPC') || hasCode(error, 'EDQUOT')
  return isNoSpace ? new AppError('unavailable', 'no_space', message, { cause: error }) : error
}

/** Reads the manifest and checks every file against it. */
export async function verifyBackup(dir: string): Promise<BackupManifest> {
  const manifest = await readManifest(dir)
  for (const { path, size, sha256 } of manifest.files) {
    const seen = await hashFile(dir, path).catch((error) => damaged(`${path}: ${messageOf(error)}`))
    if (seen.size !== size || seen.sha256 !== sha256) damaged(`${path} has changed`)
  }
  return manifest
}

/** Copies a file of a backup that was verified. Throws if it has changed since. */
export async function restoreFile(dir: string, file: BackupManifest['files'][number], to: string): Promise<void> {
  const handle = await openRegular(dir, file.path).catch((error) => damaged(`${file.path}: ${messageOf(error)}`))
  if ((await hashed(handle.createReadStream(), to)).sha256 !== file.sha256) damaged(`${file.path} has changed`)
}

async function readManifest(dir: string): Promise<BackupManifest> {
  const handle = await openRegular(dir, MANIFEST).catch((error) =>
    damaged(`there is no ${MANIFEST} (${messageOf(error)})`)
  )
  let text: string
  try {
    if ((await handle.stat()).size > MAX_MANIFEST_BYTES) damaged(`${MANIFEST} is too large`)
    text = await handle.readFile('utf8')
  } finally {
    await handle.close()
  }
  const manifest = parse(text)
  if (manifest.version !== 1 || !Array.isArray(manifest.files))
    damaged(`${MANIFEST} has a version that this program does not know`)
  for (const { path } of manifest.files)
    if (typeof path !== 'string' || !PATHS.test(path))
      damaged(`it names ${JSON.stringify(path)}, which no backup contains`)
  return manifest
}

/** Never follows a link, out of the folder or within it, and never waits for the writer of a pipe. */
async function openRegular(dir: string, path: string): Promise<FileHandle> {
  const file = join(dir, path)
  if ((await realpath(file)) !== join(await realpath(dir), path)) throw new Error('it is a link')
  const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  if ((await handle.stat()).isFile()) return handle
  await handle.close()
  throw new Error('it is not a regular file')
}

function parse(text: string): BackupManifest {
  try {
    return JSON.parse(text) as BackupManifest
  } catch {
    return damaged(`${MANIFEST} is not valid JSON`)
  }
}

function damaged(why: string): never {
  throw new AppError('invalid', 'backup_damaged', `This backup can't be used: ${why}.`)
}

interface Content {
  size: number
  sha256: string
}

async function copyFile(from: string, to: string, bytes: number): Promise<Content> {
  const end = Number.isFinite(bytes) ? { end: Math.max(0, bytes - 1) } : {}
  return hashed(bytes === 0 ? Readable.from([]) : createReadStream(from, end), to)
}

async function hashFile(dir: string, path: string): Promise<Content> {
  return hashed((await openRegular(dir, path)).createReadStream())
}

/** Reads to the end, and writes what it reads to a file if one is named. */
async function hashed(source: Readable, to?: string): Promise<Content> {
  const hash = createHash('sha256')
  let size = 0
  const count = async function* (chunks: AsyncIterable<Buffer>) {
    for await (const chunk of chunks) {
      hash.update(chunk)
      size += chunk.length
      if (to !== undefined) yield chunk
    }
  }
  const sink = to === undefined ? new Writable() : createWriteStream(to, { mode: 0o600, flush: true })
  await pipeline(source, count, sink)
  return { size, sha256: hash.digest('hex') }
}
