import { readSync } from 'node:fs'

/** As many bytes as there are from a position on, up to a length: one read may give fewer than asked for. */
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
