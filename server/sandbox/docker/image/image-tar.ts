import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type Pack, pack } from 'tar-stream'

export interface TarFile {
  path: string
  mode: number
  /** The bytes, a file to read them from, or the target of a symbolic link. */
  content: Buffer | { file: string; size: number } | { link: string }
}

/** A tar of files owned by root and without times, so that equal content gives equal bytes. Memory use is bounded. */
export function tarStream(files: TarFile[]): Readable {
  const archive = pack()
  fill(archive, files).then(
    () => archive.finalize(),
    (error) => archive.destroy(error)
  )
  return Readable.from(archive, { objectMode: false })
}

async function fill(archive: Pack, files: TarFile[]): Promise<void> {
  for (const { path: name, mode, content } of files) {
    const header = { name, mode, mtime: new Date(0) }
    if (Buffer.isBuffer(content)) await pipeline([content], archive.entry({ ...header, size: content.length }))
    else if ('link' in content) archive.entry({ ...header, type: 'symlink', linkname: content.link }).end(null)
    else {
      if ((await stat(content.file)).size !== content.size) throw new Error(`${name} has changed`)
      await pipeline(createReadStream(content.file), archive.entry({ ...header, size: content.size }))
    }
  }
}
