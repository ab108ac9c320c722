import { fstatSync } from 'node:fs'
import { Socket } from 'node:net'
import type { Readable } from 'node:stream'

const STDIN = 0
const BUFFER_BYTES = 64 * 1024

/** This process's stdin. A pipe is read into one buffer, bypassing streams: a chunk is valid until `onChunk` returns. */
export function openStdin(onChunk: (chunk: Buffer) => void): Readable {
  const stat = fstatSync(STDIN)
  if (!stat.isFIFO() && !stat.isSocket()) return process.stdin.on('data', onChunk)
  const buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES)
  const callback = (length: number) => {
    onChunk(buffer.subarray(0, length))
    return true
  }
  const options = { fd: STDIN, readable: true, writable: false, onread: { buffer, callback } }
  return new Socket(options)
}
