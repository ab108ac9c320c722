const NEWLINE = 0x0a
const FIRST_CAPACITY = 16 * 1024
const EXCERPT_BYTES = 1024

export interface OversizeLine {
  head: Buffer
  tail: Buffer
  bytes: number
}

export interface LineSink {
  /** Without its newline. Valid until the call returns, copy what must stay. */
  line(bytes: Buffer): void
  /** A line over the limit, after its newline has come; all but both ends of it is gone. */
  oversize(line: OversizeLine): void
}

/**
 * Cuts a byte stream into lines. Bytes of an unfinished line are copied once, into a buffer that doubles: linear in time, and
 * no small slice keeps a big chunk alive. Works on bytes, so a cut inside a UTF-8 character does no harm.
 */
export class LineReader {
  readonly #sink: LineSink
  readonly #maxBytes: number
  #buffer: Buffer = Buffer.alloc(0)
  #length = 0
  #overflow: Overflow | null = null
  #expected: Expected | null = null

  constructor(maxBytes: number, sink: LineSink) {
    this.#maxBytes = maxBytes
    this.#sink = sink
  }

  push(chunk: Buffer): void {
    let offset = 0
    while (offset < chunk.length) {
      if (this.#expected) {
        offset += this.#fill(this.#expected, chunk.subarray(offset))
        continue
      }
      const newline = chunk.indexOf(NEWLINE, offset)
      if (newline === -1) {
        this.#keep(chunk.subarray(offset))
        return
      }
      this.#finish(chunk.subarray(offset, newline))
      offset = newline + 1
    }
  }

  /** The bytes that follow this line don't form lines. Call it from `line`. */
  expect(bytes: number, done: (content: Buffer) => void): void {
    if (bytes === 0) done(Buffer.alloc(0))
    else this.#expected = { content: Buffer.allocUnsafeSlow(bytes), length: 0, done }
  }

  /** Returns how many of the bytes it took. */
  #fill(expected: Expected, bytes: Buffer): number {
    const { content, done } = expected
    const taken = bytes.copy(content, expected.length)
    expected.length += taken
    if (expected.length < content.length) return taken
    this.#expected = null
    done(content)
    return taken
  }

  #finish(rest: Buffer): void {
    if (this.#length === 0 && this.#overflow === null && rest.length <= this.#maxBytes) {
      this.#sink.line(rest)
      return
    }
    this.#keep(rest)
    const overflow = this.#overflow
    const line = this.#buffer.subarray(0, this.#length)
    this.#overflow = null
    this.#length = 0
    if (overflow) this.#sink.oversize(overflow.report())
    else this.#sink.line(line)
    if (this.#buffer.length > FIRST_CAPACITY) this.#buffer = Buffer.alloc(0)
  }

  #keep(bytes: Buffer): void {
    if (this.#overflow) {
      this.#overflow.push(bytes)
      return
    }
    const length = this.#length + bytes.length
    if (length > this.#maxBytes) {
      this.#overflow = new Overflow()
      this.#overflow.push(this.#buffer.subarray(0, this.#length))
      this.#overflow.push(bytes)
      this.#buffer = Buffer.alloc(0)
      this.#length = 0
      return
    }
    if (length > this.#buffer.length) this.#grow(length)
    bytes.copy(this.#buffer, this.#length)
    this.#length = length
  }

  #grow(needed: number): void {
    const capacity = Math.min(this.#maxBytes, Math.max(needed, this.#buffer.length * 2, FIRST_CAPACITY))
    const bigger = Buffer.allocUnsafeSlow(capacity)
    this.#buffer.copy(bigger, 0, 0, this.#length)
    this.#buffer = bigger
  }
}

/** Bytes after a line, as far as they have come. */
interface Expected {
  content: Buffer
  length: number
  done: (content: Buffer) => void
}

/** Both ends of a line that is being thrown away. */
class Overflow {
  #head: Buffer = Buffer.alloc(0)
  #tail: Buffer = Buffer.alloc(0)
  #bytes = 0

  push(bytes: Buffer): void {
    this.#bytes += bytes.length
    if (this.#head.length < EXCERPT_BYTES) {
      this.#head = Buffer.concat([this.#head, bytes.subarray(0, EXCERPT_BYTES - this.#head.length)])
    }
    const end = bytes.subarray(-EXCERPT_BYTES)
    const kept = this.#tail.subarray(Math.max(0, this.#tail.length + end.length - EXCERPT_BYTES))
    this.#tail = Buffer.concat([kept, end])
  }

  report(): OversizeLine {
    return { head: this.#head, tail: this.#tail, bytes: this.#bytes }
  }
}
