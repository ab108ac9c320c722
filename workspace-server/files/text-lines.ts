import { readSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { wholeCharactersFromStart } from './utf8.ts'

const CHUNK_BYTES = 256 * 1024
const NEWLINE = 10

export interface LineRequest {
  /** The first line, counted from 1. */
  first: number
  maxLines: number
  maxBytes: number
  /** Lines are counted to the end only in files up to this size. */
  maxCountedBytes: number
  signal: AbortSignal
}

export interface LineRange {
  bytes: Buffer
  /** Lines that are wholly or partly in `bytes`; 0 if the file ends before the first line. */
  lines: number
  /** Whether more of the file follows. */
  truncated: boolean
  /** Whether the last line is cut because it alone exceeds the limit. */
  cutInLine: boolean
  /** null if the file is too large to count. */
  totalLines: number | null
}

/** Reads a range of lines in pieces, so that memory use does not grow with the file. */
export async function readLines(fd: number, size: number, request: LineRequest): Promise<LineRange> {
  const collector = new LineCollector(request)
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES)
  let position = 0
  while (!request.signal.aborted) {
    const read = readSync(fd, buffer, 0, CHUNK_BYTES, position)
    if (read === 0) break
    position += read
    collector.add(buffer.subarray(0, read))
    if (collector.done && position > request.maxCountedBytes) return collector.result(size > position, null)
    if (position % (16 * CHUNK_BYTES) === 0) await nextTurn()
  }
  return collector.result(false, collector.totalLines)
}

class LineCollector {
  done = false
  readonly #request: LineRequest
  readonly #kept: Buffer[] = []
  #keptBytes = 0
  #keptNewlines = 0
  #line = 1
  #endsWithNewline = true
  #sawMore = false
  #cut = false

  constructor(request: LineRequest) {
    this.#request = request
  }

  get totalLines(): number {
    return this.#endsWithNewline ? this.#line - 1 : this.#line
  }

  add(chunk: Buffer): void {
    let from = 0
    while (from < chunk.length) {
      const newline = chunk.indexOf(NEWLINE, from)
      const end = newline === -1 ? chunk.length : newline + 1
      if (this.#line >= this.#request.first) this.#take(chunk.subarray(from, end), newline !== -1)
      if (newline !== -1) this.#line += 1
      this.#endsWithNewline = newline !== -1
      from = end
    }
  }

  #take(part: Buffer, endsLine: boolean): void {
    if (this.done || this.#keptNewlines >= this.#request.maxLines) {
      this.done = true
      this.#sawMore = true
      return
    }
    const room = this.#request.maxBytes - this.#keptBytes
    const fits = part.length <= room
    this.#kept.push(Buffer.from(fits ? part : part.subarray(0, room)))
    this.#keptBytes += Math.min(part.length, room)
    if (fits && endsLine) this.#keptNewlines += 1
    if (!fits) {
      this.done = true
      this.#sawMore = true
      this.#cut = true
    }
  }

  result(hasMore: boolean, totalLines: number | null): LineRange {
    const all = Buffer.concat(this.#kept)
    const truncated = this.#sawMore || hasMore
    if (!this.#cut) return { bytes: all, lines: countLines(all), truncated, cutInLine: false, totalLines }
    // Whole lines are easier to read. Only a single line over the limit is cut, between two characters.
    const lastWhole = all.lastIndexOf(NEWLINE)
    const bytes = lastWhole === -1 ? wholeCharactersFromStart(all) : all.subarray(0, lastWhole + 1)
    return { bytes, lines: countLines(bytes), truncated: true, cutInLine: lastWhole === -1, totalLines }
  }
}

function countLines(bytes: Buffer): number {
  let lines = 0
  for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE, at + 1)) lines++
  return bytes.length > 0 && bytes[bytes.length - 1] !== NEWLINE ? lines + 1 : lines
}
