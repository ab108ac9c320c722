/**
 * The client's side of the stdio door. Owns framing and flow, and a short way for the calls of clients of the older revisions:
 * those need nothing of what the SDK does to a message, and it does it several times over. All else goes through the SDK.
 */
import type { Readable, Writable } from 'node:stream'
import type { JSONRPCMessage, Progress, RequestId, Transport } from '@modelcontextprotocol/server'
import { AppError, messageOf } from '../lib/errors.ts'
import { LineReader } from '../lib/line-reader.ts'

export interface ShortWay {
  /** Never rejects. */
  call(
    name: string,
    args: Record<string, unknown>,
    context: { signal: AbortSignal; onProgress?: (progress: Progress) => void; meta?: Record<string, unknown> }
  ): Promise<Record<string, unknown>>
  knows(name: string): boolean
}

export interface StdioTransportOptions {
  /** Opens the input; a chunk is valid until `onChunk` returns. */
  input(onChunk: (chunk: Buffer) => void): Readable
  output: Writable
  shortWay: ShortWay
  maxLineBytes?: number
}

type Params = Record<string, unknown>

const MAX_LINE_BYTES = 16 * 1024 * 1024
const BUSY = 4
const MAX_IN_FLIGHT = 10_000
const PARSE_ERROR = -32_700
/** From here on every message carries an envelope that only the SDK reads. */
const FIRST_MODERN = '2026'

export class StdioTransport implements Transport {
  onclose?: (() => void) | undefined
  onerror?: ((error: Error) => void) | undefined
  onmessage?: ((message: JSONRPCMessage) => void) | undefined
  /** Resolves when the client has gone, or the transport was closed. */
  readonly closed: Promise<void>

  readonly #options: StdioTransportOptions
  readonly #lines: LineReader
  readonly #running = new Map<RequestId, AbortController>()
  readonly #resolveClosed: () => void
  #input: Readable | undefined
  #outbox = ''
  #initialize: RequestId | undefined
  #isShort = false
  #open = true

  constructor(options: StdioTransportOptions) {
    this.#options = options
    const { promise, resolve } = Promise.withResolvers<void>()
    this.closed = promise
    this.#resolveClosed = resolve
    this.#lines = new LineReader(options.maxLineBytes ?? MAX_LINE_BYTES, {
      line: (bytes) => this.#onLine(bytes),
      oversize: ({ bytes }) => this.#refuse(`A message of ${bytes} bytes is too long.`)
    })
  }

  async start(): Promise<void> {
    const { output } = this.#options
    const input = this.#options.input((chunk) => this.#lines.push(chunk))
    this.#input = input
    input.on('error', () => this.#end())
    input.once('end', () => this.#end())
    input.once('close', () => this.#end())
    output.on('error', () => this.#end())
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (!this.#open) throw new AppError('cancelled', 'client_gone', 'The client has gone.')
    if ('result' in message && message.id === this.#initialize) this.#greeted(message.result)
    this.#post(message)
  }

  async close(): Promise<void> {
    this.#flush()
    this.#end()
  }

  #onLine(bytes: Buffer): void {
    if (!this.#open || bytes.length === 0) return
    let message: JSONRPCMessage
    try {
      message = JSON.parse(bytes.toString('utf8'))
    } catch {
      if (bytes.toString('utf8').trim() !== '') this.#refuse('A line is no valid JSON.')
      return
    }
    if (typeof message !== 'object' || message === null) {
      this.#refuse('A line is no JSON-RPC message.')
      return
    }
    try {
      if (!(this.#isShort && this.#takeShortWay(message))) this.#takeLongWay(message)
    } catch (error) {
      this.onerror?.(error instanceof Error ? error : new Error(messageOf(error)))
    }
  }

  #takeLongWay(message: JSONRPCMessage): void {
    if ('method' in message && message.method === 'initialize' && 'id' in message) this.#initialize = message.id
    this.onmessage?.(message)
  }

  #greeted(result: Params): void {
    this.#isShort = typeof result.protocolVersion === 'string' && result.protocolVersion < FIRST_MODERN
  }

  #takeShortWay(message: JSONRPCMessage): boolean {
    if (!('method' in message) || !isParams(message.params)) return false
    const { params } = message
    if (message.method === 'notifications/cancelled') {
      const controller = this.#running.get(params.requestId as RequestId)
      controller?.abort()
      return controller !== undefined
    }
    if (message.method !== 'tools/call' || !('id' in message)) return false
    const { id } = message
    const { name, arguments: args = {}, _meta: meta = {} } = params
    const isSimple = typeof name === 'string' && isParams(args) && isParams(meta) && this.#options.shortWay.knows(name)
    const isNew = (typeof id === 'string' || typeof id === 'number') && !this.#running.has(id)
    if (!isSimple || !isNew || this.#running.size >= MAX_IN_FLIGHT) return false
    void this.#call(id, name, args, meta)
    return true
  }

  async #call(id: RequestId, name: string, args: Params, meta: Params): Promise<void> {
    const controller = new AbortController()
    this.#running.set(id, controller)
    const { progressToken, ...carried } = meta
    const result = await this.#options.shortWay.call(name, args, {
      signal: controller.signal,
      meta: carried,
      ...(progressToken === undefined ? {} : { onProgress: (progress) => this.#progress(id, progressToken, progress) })
    })
    this.#running.delete(id)
    // Who has cancelled expects no answer.
    if (!controller.signal.aborted) this.#post({ jsonrpc: '2.0', id, result })
  }

  #progress(id: RequestId, progressToken: unknown, progress: Progress): void {
    if (!this.#running.has(id)) return
    this.#post({ jsonrpc: '2.0', method: 'notifications/progress', params: { ...progress, progressToken } })
  }

  #refuse(message: string): void {
    this.onerror?.(new Error(message))
    this.#post({ jsonrpc: '2.0', error: { code: PARSE_ERROR, message } })
  }

  /** A lonely answer leaves at once; when much is under way, all of one round of the event loop leaves in one write. */
  #post(message: JSONRPCMessage): void {
    if (!this.#open) return
    const line = `${JSON.stringify(message)}\n`
    if (this.#outbox === '' && this.#running.size === 0) {
      this.#write(line)
      return
    }
    if (this.#outbox === '') (this.#running.size > BUSY ? setImmediate : process.nextTick)(this.#flush)
    this.#outbox += line
  }

  readonly #flush = (): void => {
    const text = this.#outbox
    this.#outbox = ''
    if (text !== '' && this.#open) this.#write(text)
  }

  #write(text: string): void {
    const { output } = this.#options
    // A client that does not read is not read from either.
    if (!output.write(text)) {
      this.#input?.pause()
      output.once('drain', () => this.#input?.resume())
    }
  }

  #end(): void {
    if (!this.#open) return
    this.#open = false
    for (const controller of this.#running.values()) controller.abort()
    this.#running.clear()
    this.#input?.pause()
    this.onclose?.()
    this.#resolveClosed()
  }
}

function isParams(value: unknown): value is Params {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
