import { readSync } from 'node:fs'

/** Reads up to `length` bytes from a position, because a single read may return fewer. */
export function readRange(fd: number, position: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length)
  let filled = 0
  while (filled < length) {
    const read = readSync(fd, bytes, filled, length - filled, position + filled)
    if (read === 0) break
    filled += read
  }
  return bytes.subarray(0, filled)
}
