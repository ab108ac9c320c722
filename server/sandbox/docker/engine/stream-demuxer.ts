import { AppError } from '../../../lib/errors.ts'
import type { DemuxSink } from '../../workspace/stream-transport.ts'

const HEADER_BYTES = 8
const STDIN = 0
const STDOUT = 1
const STDERR = 2
const SYSTEM_ERROR = 3

/** The engine writes frames of 32 kB. A much larger length means that we have lost our place in the stream. */
const MAX_FRAME_BYTES = 16 * 1024 * 1024
const MAX_SYSTEM_ERROR_BYTES = 4096

/**
 * Splits Docker's multiplexed stream. It passes payload on as it arrives, so memory use does not grow with the frame. It throws
 * if the bytes are not in the engine's format or if the engine reports an error, and can't be used after that.
 */
export class StreamDemuxer {
  readonly #sink: DemuxSink
  readonly #header = Buffer.alloc(HEADER_BYTES)
  #headerBytes = 0
  #type = STDIN
  #left = 0
  #systemError: Buffer[] = []
  #systemErrorBytes = 0

  constructor(sink: DemuxSink) {
    this.#sink = sink
  }

  push(chunk: Buffer): void {
    let offset = 0
    while (offset < chunk.length) {
      if (this.#left > 0) {
        const end = Math.min(chunk.length, offset + this.#left)
        this.#left -= end - offset
        this.#pass(chunk.subarray(offset, end))
        offset = end
      } else {
        offset += this.#readHeader(chunk, offset)
      }
      if (this.#left === 0 && this.#type === SYSTEM_ERROR && this.#headerBytes === 0) throw this.#engineError()
    }
  }

  #readHeader(chunk: Buffer, offset: number): number {
    const taken = chunk.copy(this.#header, this.#headerBytes, offset, offset + HEADER_BYTES - this.#headerBytes)
    this.#headerBytes += taken
    if (this.#headerBytes < HEADER_BYTES) return taken
    this.#headerBytes = 0
    const [type = -1, a, b, c] = this.#header
    const length = this.#header.readUInt32BE(4)
    if (type > SYSTEM_ERROR || a !== 0 || b !== 0 || c !== 0) throw protocolError('a frame header is malformed')
    if (length > MAX_FRAME_BYTES) throw protocolError(`a frame claims ${length} bytes`)
    this.#type = type
    this.#left = length
    return taken
  }

  #pass(payload: Buffer): void {
    if (this.#type === STDOUT) this.#sink.stdout(payload)
    else if (this.#type === STDERR) this.#sink.stderr(payload)
    else if (this.#type === SYSTEM_ERROR && this.#systemErrorBytes < MAX_SYSTEM_ERROR_BYTES) {
      const kept = payload.subarray(0, MAX_SYSTEM_ERROR_BYTES - this.#systemErrorBytes)
      this.#systemError.push(Buffer.from(kept))
      this.#systemErrorBytes += kept.length
    }
  }

  #engineError(): AppError {
    const text = Buffer.concat(this.#systemError).toString('utf8').trim()
    return new AppError('unavailable', 'engine_stream_error', `The container engine broke off the stream: ${text}`)
  }
}

function protocolError(what: string): AppError {
  return new AppError('unavailable', 'stream_corrupt', `The stream from the container engine is damaged: ${what}.`)
}
