import { pipeline, type Readable } from 'node:stream'
import { pipeline as finished } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { type Pack, pack } from 'tar-stream'
import { isAppError, messageOf } from '../../lib/errors.ts'

export interface OpenedFile {
  size: number
  chunks: AsyncIterable<Buffer>
}

export interface ArchiveOptions {
  files: { path: string; size: number }[]
  read: (path: string) => Promise<OpenedFile>
  /** The maximum size of all files together; those beyond it are left out. */
  maxBytes: number
  /** Called when nothing more is read. */
  done?: () => Promise<void>
}

const ZEROS = Buffer.alloc(64 * 1024)

/**
 * Packs these files as tar.gz while reading them. A file that can't be read does not affect the others: a list at the end names
 * it.
 */
export function archiveOf(options: ArchiveOptions): Readable {
  const archive = pack()
  const gzip = createGzip()
  // The reader of the gzip gets the failure. Without this callback, a broken stream would end the process.
  pipeline(archive, gzip, () => {})
  const filled = fill(archive, options).then(
    () => archive.finalize(),
    (error) => archive.destroy(error)
  )
  void filled.then(options.done).catch(() => {})
  return gzip
}

async function fill(archive: Pack, { files, read, maxBytes }: ArchiveOptions): Promise<void> {
  const tooLarge = `The archive would exceed its limit of ${Math.floor(maxBytes / 1024 / 1024)} MB. Download this file alone.`
  let leftOut = ''
  let room = maxBytes
  for (const { path, size } of files) {
    try {
      const file = size > room ? undefined : await read(path)
      const fits = file !== undefined && file.size <= room
      const note = fits ? await add(archive, path, file) : tooLarge
      if (fits) room -= file.size
      if (note) leftOut += `${path}: ${note}\n`
    } catch (error) {
      if (!isAppError(error, 'file_refused')) throw error
      leftOut += `${path}: ${messageOf(error)}\n`
    }
  }
  if (leftOut === '') return
  const bytes = Buffer.from(leftOut)
  await finished([bytes], archive.entry({ name: freeName(files), size: bytes.length }))
}

/** A file that changes meanwhile keeps the size in its header. Returns a note about that, if there is one. */
async function add(archive: Pack, name: string, { size, chunks }: OpenedFile): Promise<string | undefined> {
  let note: string | undefined
  async function* exactly(): AsyncIterable<Buffer> {
    let room = size
    try {
      for await (const chunk of chunks) {
        yield chunk
        room -= chunk.length
      }
    } catch (error) {
      if (!isAppError(error, 'file_refused')) throw error
      note = `${messageOf(error)} It ends early and is padded with zeros.`
      for (; room > 0; room -= ZEROS.length) yield ZEROS.subarray(0, room)
    }
  }
  await finished(exactly(), archive.entry({ name, size }))
  return note
}

function freeName(files: ArchiveOptions['files']): string {
  const taken = new Set(files.map(({ path }) => path))
  let name = 'LEFT-OUT.txt'
  while (taken.has(name)) name = `_${name}`
  return name
}
