import { createReadStream } from 'node:fs'
import { Readable } from 'node:stream'

export interface TarFile {
  path: string
  mode: number
  /** The bytes, a file to read them from, or the target of a symbolic link. */
  content: Buffer | { file: string; size: number } | { link: string }
}

const BLOCK = 512

/** A tar of files owned by root and without times, so that equal content gives equal bytes. Memory use is bounded. */
export function tarStream(files: TarFile[]): Readable {
  return Readable.from(chunks(files), { objectMode: false })
}

async function* chunks(files: TarFile[]): AsyncGenerator<Buffer> {
  for (const { path, mode, content } of files) {
    if ('link' in content) {
      yield header({ path, mode, size: 0, link: content.link })
      continue
    }
    const size = Buffer.isBuffer(content) ? content.length : content.size
    yield header({ path, mode, size })
    let sent = 0
    for await (const chunk of Buffer.isBuffer(content) ? [content] : createReadStream(content.file)) {
      sent += chunk.length
      yield chunk
    }
    if (sent !== size) throw new Error(`${path} changed while it was being read`)
    yield Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK)
  }
  yield Buffer.alloc(2 * BLOCK)
}

/** One ustar header: https://pubs.opengroup.org/onlinepubs/9699919799/utilities/pax.html#tag_20_92_13_06 */
function header({ path, mode, size, link = '' }: { path: string; mode: number; size: number; link?: string }): Buffer {
  if (Buffer.byteLength(path) > 100 || Buffer.byteLength(link) > 100)
    throw new Error(`${path} is too long for a tar header`)
  const block = Buffer.alloc(BLOCK)
  block.write(path, 0)
  block.write(octal(mode, 8), 100)
  block.write(octal(0, 8), 108)
  block.write(octal(0, 8), 116)
  block.write(octal(size, 12), 124)
  block.write(octal(0, 12), 136)
  block.write('        ', 148)
  block.write(link ? '2' : '0', 156)
  block.write(link, 157)
  block.write('ustar\u000000', 257)
  const sum = block.reduce((total, byte) => total + byte, 0)
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return block
}

function octal(value: number, width: number): string {
  return `${value.toString(8).padStart(width - 1, '0')}\0`
}
