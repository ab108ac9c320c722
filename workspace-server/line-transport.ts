/**
 * JSON-RPC lines on a pair of streams. It limits what the SDK's own transport does not: the length of a line, unanswered
 * requests, and output for a slow reader. In the last two cases, reading pauses until there is space again.
 */
import type { Readable, Writable } from 'node:stream'
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/server'
import { isRecord } from '../server/lib/is-record.ts'
import { LineReader } from '../server/lib/streams/line-reader.ts'
import { log } from './log.ts'
import { MAX_LINE_BYTES } from './protocol.ts'

const MAX_UNANSWERED_BYTES = 4 * MAX_LINE_BYTES
const MAX_UNANSWERED = 1000
const MAX_UNWRITTEN_BYTES = 2 * MAX_LINE_BYTES

type Message = JSONRPCMessage

export class LineTransport implements Transport {
  onclose?: (() => void) | undefined
  onerror?: ((error: Error) => void) | undefined
  onmessage?: ((message: Message) => void) | undefined

  readonly #input: Readable
  readonly #output: Writable
  readonly #lines: LineReader
  #closed = false
  readonly #unanswered = new Map<unknown, number>()
  #unansweredBytes = 0

  constructor(input: Readable, output: Writable, onLine: () => void = () => {}) {
    this.#input = input
    this.#output = output
    this.#lines = new LineReader(MAX_LINE_BYTES, {
      line: (line) => {
        onLine()
        if (line.length > 0 && !this.#closed) this.#deliver(line)
      },
      oversize: ({ bytes }) => {
        onLine()
        log(`A line of ${bytes} bytes was dropped: the limit is ${MAX_LINE_BYTES}`)
      }
    })
  }

  async start(): Promise<void> {
    const end = () => void this.close()
    this.#output.on('error', end)
    this.#output.on('drain', () => this.#breathe())
    this.#input.on('error', end)
    this.#input.on('end', end)
    this.#input.on('close', end)
    this.#input.on('data', (chunk: Buffer) => {
      this.#lines.push(chunk)
      this.#breathe()
    })
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.onclose?.()
  }

  async send(message: Message): Promise<void> {
    if (this.#closed) return
    const line = this.#fit(message)
    if ('id' in message && !('method' in message)) this.#answered(message.id)
    const room = this.#output.write(line)
    this.#breathe()
    if (!room) await this.#drained()
  }

  #drained(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const done = () => {
      this.#output.off('drain', done)
      this.#output.off('close', done)
      resolve()
    }
    this.#output.on('drain', done)
    this.#output.on('close', done)
    return promise
  }

  /** A result over the limit becomes an error with the same id, so that its caller does not wait forever. */
  #fit(message: Message): string {
    const line = `${JSON.stringify(message)}\n`
    if (line.length * 3 <= MAX_LINE_BYTES || Buffer.byteLength(line) <= MAX_LINE_BYTES) return line
    log('A message over the line limit was not sent')
    const error = { code: -32603, message: 'The answer is longer than one message may be.' }
    return `${JSON.stringify({ jsonrpc: '2.0', id: 'id' in message ? message.id : null, error })}\n`
  }

  #deliver(line: Buffer): void {
    const message = parseMessage(line)
    if (message === null) {
      log('A line that is not a JSON-RPC message was dropped')
      return
    }
    const params = 'params' in message ? message.params : undefined
    const bytes = params?.contentBytes
    if (bytes === undefined) {
      this.#handle(message, line.length)
      return
    }
    if (!isLength(bytes)) {
      log('The content after a line has no usable length')
      void this.close() // Nobody knows where the next line begins.
      return
    }
    const length = line.length
    this.#lines.expect(bytes, (content) =>
      this.#handle({ ...message, params: { ...params, content } } as Message, length + bytes)
    )
  }

  #handle(message: Message, bytes: number): void {
    if (this.#closed) return
    this.#account(message, bytes)
    try {
      this.onmessage?.(message)
    } catch (error) {
      log('A message was not handled', error)
    }
  }

  #account(message: Message, bytes: number): void {
    if (!('method' in message)) return
    if ('id' in message) {
      this.#answered(message.id)
      this.#unanswered.set(message.id, bytes)
      this.#unansweredBytes += bytes
    } else if (message.method === 'notifications/cancelled') this.#answered(message.params?.requestId) // A cancelled request gets no answer.
  }

  #answered(id: unknown): void {
    this.#unansweredBytes -= this.#unanswered.get(id) ?? 0
    this.#unanswered.delete(id)
  }

  #breathe(): void {
    const full =
      this.#output.writableLength > MAX_UNWRITTEN_BYTES ||
      this.#unansweredBytes > MAX_UNANSWERED_BYTES ||
      this.#unanswered.size > MAX_UNANSWERED
    if (full) this.#input.pause()
    else if (this.#input.isPaused()) this.#input.resume()
  }
}

function parseMessage(line: Buffer): Message | null {
  try {
    const value: unknown = JSON.parse(line.toString('utf8'))
    return isMessage(value) ? value : null
  } catch {
    return null
  }
}

function isLength(bytes: unknown): bytes is number {
  return Number.isSafeInteger(bytes) && Number(bytes) >= 0 && Number(bytes) <= MAX_LINE_BYTES
}

/** Checks the outer shape only; the SDK checks the rest against the method's schema. */
function isMessage(value: unknown): value is Message {
  if (!isRecord(value) || value.jsonrpc !== '2.0') return false
  if ('id' in value && typeof value.id !== 'string' && typeof value.id !== 'number') return false
  if ('method' in value) return typeof value.method === 'string' && (!('params' in value) || isRecord(value.params))
  return 'id' in value && ('result' in value || 'error' in value)
}
