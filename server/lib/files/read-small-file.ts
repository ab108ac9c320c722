import { closeSync, constants, fstatSync, openSync, readSync, statSync } from 'node:fs'
import { hasCode, messageOf } from '../errors.ts'

const CHUNK_BYTES = 64 * 1024

/**
 * The text of a file that someone else may have named: never more than `maxBytes` of it, whatever it is and however it grows. Throws
 * for anything but a regular file, and does not wait for a writer of a pipe; the null device is an empty file. `anyKind` is for files
 * that only the user of this program names: a pipe is read too.
 */
export function readSmallFile(file: string, maxBytes: number, { anyKind = false } = {}): string {
  const fd = openSync(file, constants.O_RDONLY | (anyKind ? 0 : constants.O_NONBLOCK))
  try {
    const found = fstatSync(fd)
    if (found.isCharacterDevice() && found.rdev === statSync('/dev/null', { throwIfNoEntry: false })?.rdev) return ''
    if (!anyKind && !found.isFile()) throw new Error('it is not a regular file')
    const chunks: Buffer[] = []
    for (let size = 0; ; ) {
      if (size > maxBytes || found.size > maxBytes) throw new Error(`it is larger than ${maxBytes} bytes`)
      const chunk = Buffer.allocUnsafe(CHUNK_BYTES)
      const bytes = readSync(fd, chunk)
      if (bytes === 0) return Buffer.concat(chunks).toString('utf8')
      chunks.push(chunk.subarray(0, bytes))
      size += bytes
    }
  } finally {
    closeSync(fd)
  }
}

export function isMissingFile(error: unknown): boolean {
  return hasCode(error, 'ENOENT', 'ENOTDIR')
}

/** The second half of "FILE can't be used: …". */
export function whyUnreadable(error: unknown): string {
  return isMissingFile(error) ? 'there is no such file' : messageOf(error)
}
