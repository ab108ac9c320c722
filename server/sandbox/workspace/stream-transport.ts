/**
 * An MCP transport over the streams of a process in a sandbox. Owns the stream and its flow control; does not know about containers.
 * Invariant: only the first answer to a pending request, its progress, or a known notification reaches `onmessage`, whatever the
 * other side writes, and memory use stays flat meanwhile.
 */
import type { Duplex } from 'node:stream'
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'
import { MAX_LINE_BYTES } from '../../../workspace-server/protocol.ts'
import { AppError, messageOf } from '../../lib/errors.ts'
import { isRecord } from '../../lib/is-record.ts'
import type { Logger } from '../../lib/logger.ts'
import { ByteTail } from '../../lib/streams/byte-tail.ts'
import { type FilterCounters, MessageFilter } from './message-filter.ts'
import { WireIds } from './wire-ids.ts'

const STDERR_TAIL_BYTES = 64 * 1024
const MAX_QUEUED_MESSAGES = 512
const MAX_QUEUED_BYTES = 4 * MAX_LINE_BYTES
const CLOSE_GRACE_MS = 250
const NO_CONTENT = new Uint8Array()

export interface DemuxSink {
  /** `payload` is a slice of the pushed chunk and valid only until the call returns: copy what you keep. */
  stdout(payload: Buffer): void
  stderr(payload: Buffer): void
}

/** Separates output and error output, which an engine sends in one stream. `push` throws if the stream is damaged. */
export type Demux = (sink: DemuxSink) => { push(chunk: Buffer): void }

export interface TransportOptions {
  demux: Demux
  logger: Logger
  maxLineBytes?: number
  /** Whether we are ending the sandbox. */
  isEnding?: (() => boolean) | undefined
}

export class StreamTransport implements Transport {
  onclose?: (() => void) | undefined
  onerror?: ((error: Error) => void) | undefined
  /** May return a promise; nothing more is read until it settles. */
  onmessage?: ((message: JSONRPCMessage) => void) | undefined
  /** Resolves when the stream itself has ended. */
  readonly closed: Promise<void>

  readonly #stream: Duplex
  readonly #maxLineBytes: number
  readonly #ids = new WireIds()
  readonly #filter: MessageFilter
  readonly #demuxer: ReturnType<Demux>
  readonly #stderr = new ByteTail(STDERR_TAIL_BYTES)
  /** Each of these rejects one send that is in progress. */
  readonly #sending = new Set<(error: AppError) => void>()
  #queuedBytes = 0
  #open = true
  #started = false

  constructor(stream: Duplex, options: TransportOptions) {
    this.#stream = stream
    this.#maxLineBytes = options.maxLineBytes ?? MAX_LINE_BYTES
    const isEnding = () => !this.#open || options.isEnding?.() === true
    this.#filter = new MessageFilter(this.#ids, this.#maxLineBytes, options.logger, isEnding)
    this.#demuxer = options.demux({
      stdout: (payload) => this.#filter.push(payload),
      stderr: (payload) => this.#stderr.push(payload)
    })
    const { promise, resolve } = Promise.withResolvers<void>()
    this.closed = promise
    // The reading loop reports errors. A later error must not end the process.
    stream.on('error', () => {})
    stream.once('close', () => {
      // If the transport was started, the reading loop finishes it after the last message has been consumed.
      if (!this.#started) this.#finish()
      resolve()
    })
    if (stream.closed) resolve()
  }

  get isOpen(): boolean {
    return this.#open
  }

  get counters(): Readonly<FilterCounters> {
    return this.#filter.counters
  }

  /** The last part of what the server wrote to stderr. */
  stderr(): string {
    return this.#stderr.text()
  }

  /** The last part of stdout that was not JSON-RPC. */
  noise(): string {
    return this.#filter.noise()
  }

  async start(): Promise<void> {
    if (this.#started) throw new AppError('internal', 'transport_started', 'This transport has been started before.')
    this.#started = true
    void this.#read()
  }

  /** Resolves when the bytes have left this process. */
  async send(message: JSONRPCMessage): Promise<void> {
    if (!this.#open) throw connectionLost(undefined, false)
    const outgoing = this.#ids.outgoing(message)
    if (outgoing === null) return
    try {
      const { line, content } = framed(outgoing)
      await this.#write(Buffer.from(`${line}\n`), content)
    } catch (error) {
      this.#ids.forget(message)
      throw error
    }
  }

  /** Closes the server's input and gives it a moment to exit by itself. */
  async close(): Promise<void> {
    this.#finish()
    if (!this.#started) this.#stream.destroy()
    if (!this.#stream.destroyed) {
      this.#stream.end()
      const timer = setTimeout(() => this.#stream.destroy(), CLOSE_GRACE_MS)
      void this.closed.then(() => clearTimeout(timer))
    }
    await this.closed
  }

  async #read(): Promise<void> {
    try {
      // Reading the next chunk only when this one's messages have been consumed gives us backpressure.
      for await (const chunk of this.#stream) {
        this.#demuxer.push(chunk)
        const messages = this.#filter.take()
        if (messages.length > 0) await this.#deliver(messages)
      }
      this.#finish()
    } catch (error) {
      this.#finish(error)
    }
    this.#stream.destroy()
  }

  async #deliver(messages: JSONRPCMessage[]): Promise<void> {
    for (const message of messages) {
      if (!this.#open) return
      try {
        const consumed: unknown = this.onmessage?.(message)
        // The SDK handles a notification in a microtask; an answer that follows directly must not overtake it.
        if (consumed instanceof Promise || 'method' in message) await consumed
      } catch (error) {
        this.onerror?.(error instanceof Error ? error : new Error(messageOf(error)))
      }
    }
  }

  async #write(line: Buffer, content: Uint8Array): Promise<void> {
    const bytes = line.length + content.length
    if (line.length - 1 > this.#maxLineBytes || content.length > this.#maxLineBytes) {
      throw new AppError('invalid', 'message_too_large', `A message of ${bytes} bytes is too large to send.`)
    }
    if (this.#sending.size >= MAX_QUEUED_MESSAGES || this.#queuedBytes + bytes > MAX_QUEUED_BYTES) {
      throw new AppError('unavailable', 'sandbox_not_reading', 'The sandbox does not read its input; try again later.')
    }
    this.#queuedBytes += bytes
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#sending.add(reject)
    const done = (error?: Error | null) => {
      this.#sending.delete(reject)
      this.#queuedBytes -= bytes
      if (error) reject(connectionLost(error))
      else resolve()
    }
    if (content.length === 0) this.#stream.write(line, done)
    else {
      this.#stream.write(line)
      this.#stream.write(content, done)
    }
    await promise
  }

  #finish(failure?: unknown): void {
    if (!this.#open) return
    this.#open = false
    this.#ids.clear()
    for (const fail of this.#sending) fail(connectionLost(failure))
    this.#sending.clear()
    if (failure instanceof AppError) this.onerror?.(failure)
    this.onclose?.()
  }
}

/** Bytes in `content` follow the line as they are; see `RestoreParams`. */
function framed(message: Record<string, unknown>): { line: string; content: Uint8Array } {
  const { params } = message
  if (!isRecord(params) || !(params.content instanceof Uint8Array))
    return { line: JSON.stringify(message), content: NO_CONTENT }
  const { content, ...rest } = params
  return { line: JSON.stringify({ ...message, params: { ...rest, contentBytes: content.length } }), content }
}

/** `sent: false` means that the call was never sent, so it certainly had no effect. */
export function connectionLost(cause?: unknown, sent = true): AppError {
  const message = sent
    ? 'The connection to the sandbox ended before the answer: whether the call took effect is unknown.'
    : 'The connection to the sandbox has ended: the call was not made.'
  return new AppError('unavailable', 'connection_lost', message, { cause, details: { sent } })
}
